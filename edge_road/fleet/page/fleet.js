// The fleet page: rows come once a second; what is silent there, or here, is shown as unknown.
import { SIGNS, makeMap } from "./map.js";
import { comeBack } from "./session.js";

const ORDER = ["icy", "unknown", "wet", "dry"];
const LOST_MS = 3000, MOST_POINTS = 512;
const $ = (id) => document.getElementById(id);
const tracks = new Map();
const rows = new Map();
let chosen = null, heardAt = -Infinity, vehicles = [];
const drawMap = makeMap($("map"), choose);

function listen() {
  const stream = new EventSource("stream");
  stream.onopen = loadTracks;
  stream.onmessage = (event) => take(JSON.parse(event.data));
  stream.onerror = () => stream.readyState === EventSource.CLOSED && setTimeout(comeBack, 1000, listen);
}

async function loadTracks() {
  const answer = await fetch("tracks");
  if (!answer.ok) return;
  tracks.clear();
  for (const [name, points] of Object.entries(await answer.json())) tracks.set(name, points);
  draw();
}

function take(news) {
  heardAt = performance.now();
  vehicles = news.vehicles;
  for (const vehicle of vehicles) follow(vehicle);
  showLink(news.health);
  draw();
}

// The page adds to a track what moved; the server's own, coarser one comes with the next connection.
function follow({ vehicle, position, state }) {
  if (!position) return;
  const track = tracks.get(vehicle) ?? [];
  const last = track.at(-1);
  if (last && last[0] === position[0] && last[1] === position[1]) return;
  track.push([...position, state]);
  tracks.set(vehicle, track.length > MOST_POINTS ? track.filter((_, at) => at % 2 === 0) : track);
}

function showLink({ broker, store, lost }) {
  const troubles = [broker !== "ok" && `broker: ${broker}`, !["ok", "none"].includes(store) && `store: ${store}`, lost && `${lost} records lost`];
  const text = troubles.filter(Boolean).join("; ");
  write($("link"), text || `${vehicles.length} vehicles, live`);
  $("link").classList.toggle("lost", Boolean(text));
}

function draw() {
  const shown = performance.now() - heardAt > LOST_MS ? vehicles.map((v) => ({ ...v, state: "unknown", reasons: ["no connection"] })) : vehicles;
  const sorted = [...shown].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.vehicle.localeCompare(b.vehicle));
  drawTotals(shown);
  drawRows(sorted);
  drawMap(shown, tracks, chosen);
  $("nobody").hidden = shown.length > 0;
  $("no-map").hidden = !$("map").hasAttribute("hidden");
}

function drawTotals(shown) {
  if (!$("totals").childElementCount) $("totals").append(...ORDER.map(totalOf));
  ORDER.forEach((state, place) => write($("totals").children[place].firstChild, String(shown.filter((v) => v.state === state).length)));
}

function totalOf(state) {
  const item = document.createElement("li");
  item.dataset.state = state;
  item.append(Object.assign(document.createElement("strong"), { textContent: "0" }), `${SIGNS[state]} ${state}`);
  return item;
}

// Rows are kept and rewritten, so that the keyboard's focus stays where it is.
function drawRows(sorted) {
  const body = $("vehicles");
  sorted.forEach((vehicle, place) => {
    const row = rows.get(vehicle.vehicle) ?? newRow(vehicle.vehicle);
    fill(row, vehicle);
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] ?? null);
  });
  while (body.childElementCount > sorted.length) {
    rows.delete(body.lastChild.dataset.vehicle);
    body.lastChild.remove();
  }
}

function newRow(name) {
  const row = document.createElement("tr");
  row.dataset.vehicle = name;
  for (let cell = 0; cell < 5; cell++) row.append(document.createElement("td"));
  const button = Object.assign(document.createElement("button"), { textContent: name, type: "button" });
  button.addEventListener("click", () => choose(name));
  row.children[1].append(button);
  rows.set(name, row);
  return row;
}

function fill(row, { vehicle, state, reasons, confidence, silent_s, speed_mps }) {
  row.dataset.state = state;
  row.classList.toggle("chosen", vehicle === chosen);
  row.children[1].firstChild.setAttribute("aria-pressed", vehicle === chosen);
  const sure = confidence === null || state === "unknown" ? "" : ` ${Math.round(100 * confidence)} %`;
  write(row.children[0], `${SIGNS[state]} ${state}${sure}`);
  write(row.children[2], reasons.map((reason) => reason.replaceAll("_", " ")).join(", "));
  write(row.children[3], silent_s === null ? "–" : ageOf(silent_s));
  write(row.children[4], speed_mps === null ? "–" : `${Math.round(3.6 * speed_mps)} km/h`);
}

function ageOf(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

function write(part, text) {
  if (part.textContent !== text) part.textContent = text;
}

function choose(name) {
  chosen = name;
  draw();
  loadEvents();
}

async function loadEvents() {
  if (chosen === null) return;
  const name = chosen, answer = await fetch(`vehicles/${encodeURIComponent(name)}/events`);
  if (!answer.ok || name !== chosen) return;
  const events = await answer.json();
  write($("detail-title"), `Events of ${name}`);
  $("hint").hidden = events.length > 0;
  write($("hint"), "It has told of no event yet.");
  $("events").replaceChildren(...events.map(eventItem));
}

function eventItem({ utc, kind, text }) {
  const item = document.createElement("li");
  item.append(Object.assign(document.createElement("time"), { textContent: new Date(utc).toLocaleString() }), `${kind.replaceAll("_", " ")} ${text}`);
  return item;
}

setInterval(() => {
  if (performance.now() - heardAt <= LOST_MS) return;
  write($("link"), "no connection to the fleet service");
  $("link").classList.add("lost");
  draw();
}, 1000);
setInterval(loadEvents, 5000);
listen();
