// The live page: listens to the daemon's server-sent events and shows what they say, and how old it is.
import { watchCamera } from "./camera.js";
import { addEvent, showEvents } from "./events.js";
import { onSubmit } from "./forms.js";
import { STATES, draw, recall, remember } from "./history.js";
import { drawRegions, watchParts } from "./parts.js";
import { comeBack, post, rights } from "./session.js";
import { showLastSmoke, runSmoke } from "./smoke.js";
import { fill, write } from "./table.js";
import { currentLanguage, nameOf, useLanguage, words } from "./words.js";

const STALE_MS = 1000, HEALTH_MS = 6000; // health comes every 2 s
const SIGNS = { dry: "●", wet: "≈", icy: "❄", unknown: "?" };
const SHOWN_ELSEWHERE = ["vehicle", "boot_id", "version", "state", "source", "predictor"];
const $ = (id) => document.getElementById(id);
let last = null; // {message, at}
let healthAt = 0;

function listen() {
  const stream = new EventSource("events");
  stream.addEventListener("state", (event) => onMessage(JSON.parse(event.data)));
  stream.addEventListener("health", (event) => showHealth(JSON.parse(event.data)));
  stream.addEventListener("event", (event) => addEvent(JSON.parse(event.data)));
  stream.addEventListener("open", catchUp);
  // A browser gives up after some kinds of failure; the page does not.
  stream.onerror = () => stream.readyState === EventSource.CLOSED && setTimeout(comeBack, 500, listen);
}

async function catchUp() {
  loadAbout();
  showLastSmoke();
  showSession();
  const answer = await fetch("history");
  if (!answer.ok) return;
  const { samples, events } = await answer.json();
  recall(samples, Date.now());
  showEvents(events);
}

function onMessage(message) {
  const before = last?.message;
  last = { message, at: performance.now() };
  remember(Date.now(), message.state, message.probabilities);
  const isNew = before && (before.config_digest !== message.config_digest || before.model_digest !== message.model_digest);
  if (isNew) loadAbout();
  show();
}

function show() {
  const silent_ms = last ? performance.now() - last.at : Infinity;
  const message = last?.message;
  const isStale = silent_ms > Math.max(STALE_MS, message?.valid_for_ms ?? 0);
  const state = isStale || !message ? "unknown" : message.state;
  document.body.dataset.state = state;
  write("sign", SIGNS[state]);
  write("name", words[state]);
  write("reason", isStale ? words.stale : reasonsOf(message));
  showShares(isStale ? {} : (message?.probabilities ?? {}));
  write("confidence", isStale ? "–" : confidenceOf(message));
  write("age", message?.age_ms == null || isStale ? "–" : `${Math.round(message.age_ms)} ms`);
  write("message", last ? `${(silent_ms / 1000).toFixed(1)} s ${words.ago}` : "–");
  write("vehicle", message?.vehicle ?? "");
  if (performance.now() - healthAt > HEALTH_MS) fill($("health"), {});
}

function showShares(probabilities) {
  STATES.forEach((state, i) => {
    const item = $("shares").children[i] ?? $("shares").appendChild(shareBar(state));
    const percent = Math.round(100 * (probabilities[state] ?? 0));
    item.children[1].firstChild.style.width = `${percent}%`;
    item.children[0].textContent = words[state];
    item.children[2].textContent = probabilities[state] === undefined ? "–" : `${percent} %`;
  });
}

function shareBar(state) {
  const item = document.createElement("li"), track = document.createElement("span");
  track.append(Object.assign(document.createElement("i"), { style: `background: var(--${state})` }));
  item.append(document.createElement("span"), track, document.createElement("span"));
  return item;
}

const reasonsOf = (message) => message.reasons.map(nameOf).join(", ");

function confidenceOf(message) {
  const share = message.probabilities[message.state] ?? Math.max(...Object.values(message.probabilities), 0);
  return share ? `${Math.round(100 * share)} %` : "–";
}

function showHealth(values) {
  for (const name of SHOWN_ELSEWHERE) delete values[name];
  fill($("health"), values);
  healthAt = performance.now();
}

async function loadAbout() {
  const answer = await fetch("about");
  if (!answer.ok) return;
  const { regions = [], ...facts } = await answer.json();
  fill($("about"), facts);
  drawRegions($("regions"), regions);
}

async function showSession() {
  const { changes } = await rights();
  $("sign-in").hidden = changes;
  $("sign-out").hidden = !changes;
}

async function logOut() {
  await post("logout");
  location.reload();
}

function buildLegend() {
  const items = [...STATES, "unknown"].map((state) => {
    const item = document.createElement("li");
    const swatch = Object.assign(document.createElement("i"), { style: `background: var(--${state})` });
    item.append(swatch, `${SIGNS[state]} ${words[state]}`);
    return item;
  });
  $("legend").replaceChildren(...items);
}

function speak(code) {
  useLanguage(code);
  $("language").value = code;
  $("picture").alt = words.view;
  buildLegend();
  show();
}

$("language").addEventListener("change", (event) => {
  speak(event.target.value);
  catchUp(); // tables and events are written anew
});
onSubmit($("smoke-form"), runSmoke);
$("sign-out").addEventListener("click", logOut);
speak(currentLanguage());
setInterval(show, 200);
setInterval(() => draw($("history"), Date.now(), words), 500);
listen();
watchCamera($("picture"));
watchParts($("parts"), $("regions"), $("parts-said"));
