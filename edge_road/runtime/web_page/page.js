// The live page: listens to the daemon's server-sent events and shows what they say, and how old it is.
import { watchCamera } from "./camera.js";
import { STATES, draw, remember } from "./history.js";
import { currentLanguage, useLanguage, words } from "./words.js";

const STALE_MS = 1000;
const SIGNS = { dry: "●", wet: "≈", icy: "❄", unknown: "?" };
const MOST_EVENTS = 50;
const SHOWN_ELSEWHERE = ["vehicle", "boot_id", "version", "state", "source", "predictor"];
const DIGEST = /^[0-9a-f]{32,}$/;
const $ = (id) => document.getElementById(id);
let last = null; // {message, at}

function listen() {
  const stream = new EventSource("events");
  stream.addEventListener("state", (event) => onMessage(JSON.parse(event.data)));
  stream.addEventListener("health", (event) => showHealth(JSON.parse(event.data)));
  stream.addEventListener("event", (event) => addEvent(JSON.parse(event.data)));
  stream.addEventListener("open", () => loadAbout());
  stream.onerror = () => {
    // A browser gives up after some kinds of failure; the page does not.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 500);
  };
}

function onMessage(message) {
  last = { message, at: performance.now() };
  remember(Date.now(), message.state, message.probabilities);
  show();
}

function show() {
  const silent_ms = last ? performance.now() - last.at : Infinity;
  const isStale = silent_ms > STALE_MS;
  const message = last?.message;
  const state = isStale || !message ? "unknown" : message.state;
  document.body.dataset.state = state;
  document.body.classList.toggle("stale", isStale && last !== null);
  write("sign", SIGNS[state]);
  write("name", words[state]);
  write("reason", isStale ? words.stale : reasonsOf(message));
  write("confidence", isStale ? "–" : confidenceOf(message));
  write("age", message?.age_ms == null || isStale ? "–" : `${Math.round(message.age_ms)} ms`);
  write("message", last ? `${(silent_ms / 1000).toFixed(1)} s ${words.ago}` : "–");
  write("vehicle", message?.vehicle ?? "");
}

// Writing the same text again would make a screen reader repeat it.
function write(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

const reasonsOf = (message) => message.reasons.map((reason) => reason.replaceAll("_", " ")).join(", ");

function confidenceOf(message) {
  const share = message.probabilities[message.state] ?? Math.max(...Object.values(message.probabilities), 0);
  return share ? `${Math.round(100 * share)} %` : "–";
}

function showHealth(values) {
  for (const name of SHOWN_ELSEWHERE) delete values[name];
  fill($("health"), values);
}

function fill(body, values) {
  body.replaceChildren(...Object.entries(values).map(([name, value]) => row(name.replaceAll("_", " "), value)));
}

function row(name, value) {
  const line = document.createElement("tr");
  for (const text of [name, value === null ? "–" : String(value)]) {
    const shown = DIGEST.test(text) ? `${text.slice(0, 12)}…` : text;
    line.append(Object.assign(document.createElement("td"), { textContent: shown, title: text }));
  }
  return line;
}

function addEvent({ kind, at, text, state, reasons }) {
  const item = document.createElement("li");
  const time = Object.assign(document.createElement("time"), { textContent: new Date(at ?? Date.now()).toLocaleTimeString() });
  const said = text ?? [words[state] ?? state, ...(reasons ?? [])].filter(Boolean).join(", ");
  item.append(time, `${(kind ?? "").replaceAll("_", " ")} ${said}`);
  $("events").prepend(item);
  while ($("events").childElementCount > MOST_EVENTS) $("events").lastChild.remove();
  $("no-events").hidden = true;
}

async function loadAbout() {
  const answer = await fetch("about");
  if (!answer.ok) return;
  const { regions = [], ...facts } = await answer.json();
  fill($("about"), facts);
  $("regions").replaceChildren(...regions.map(rectangle));
}

function rectangle({ left, top, right, bottom }) {
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const sides = { x: left, y: top, width: right - left, height: bottom - top };
  for (const [name, value] of Object.entries(sides)) box.setAttribute(name, value);
  return box;
}

async function runSmoke(event) {
  event.preventDefault();
  write("smoke-verdict", words.running);
  const answer = await fetch("smoke", { method: "POST", headers: { Authorization: `Bearer ${$("token").value}` } });
  if (!answer.ok) return write("smoke-verdict", `${words.refused} (${answer.status})`);
  const { passed, checks } = await answer.json();
  write("smoke-verdict", passed ? words.passed : words.failed);
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  const rows = checks.map((c) => row(c.name.replaceAll("_", " "), `${percent(c.accuracy)} (${words.least} ${percent(c.least)})`));
  $("smoke").replaceChildren(...rows);
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

$("language").addEventListener("change", (event) => speak(event.target.value));
$("smoke-form").addEventListener("submit", runSmoke);
speak(currentLanguage());
setInterval(show, 200);
setInterval(() => draw($("history"), Date.now(), words), 500);
listen();
watchCamera($("picture"));
