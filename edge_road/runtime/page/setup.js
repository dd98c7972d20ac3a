// The crop helper: a rectangle on the live picture, a preview of the change, and its writing for whoever has signed in.
import { watchCamera } from "./camera.js";
import { onSubmit } from "./forms.js";
import { post } from "./session.js";
import { currentLanguage, useLanguage, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const SIDES = ["left", "top", "right", "bottom"];
const share = (value) => Math.min(Math.max(value, 0), 1);

function readSides() {
  return Object.fromEntries(SIDES.map((side) => [side, share(Number($(side).value) / 100)]));
}

function writeSides(crop) {
  for (const side of SIDES) $(side).value = (100 * crop[side]).toFixed(1);
  drawBox();
}

function drawBox() {
  const { left, top, right, bottom } = readSides();
  const place = { x: left, y: top, width: Math.max(right - left, 0), height: Math.max(bottom - top, 0) };
  for (const [name, value] of Object.entries(place)) $("box").setAttribute(name, value);
}

function dragging(event) {
  const frame = $("frame").getBoundingClientRect();
  const at = (e) => [share((e.clientX - frame.left) / frame.width), share((e.clientY - frame.top) / frame.height)];
  const [x, y] = at(event);
  const move = (e) => {
    const [u, v] = at(e);
    writeSides({ left: Math.min(x, u), top: Math.min(y, v), right: Math.max(x, u), bottom: Math.max(y, v) });
  };
  $("frame").setPointerCapture(event.pointerId);
  $("frame").addEventListener("pointermove", move);
  $("frame").addEventListener("lostpointercapture", () => $("frame").removeEventListener("pointermove", move), { once: true });
  event.preventDefault();
}

async function send(event) {
  event.preventDefault();
  const path = event.submitter?.value === "save" ? "setup" : "setup/preview";
  const { ok, said } = await post(path, { region: $("region").value, crop: readSides() });
  $("answer").textContent = ok ? (path === "setup" ? words.written : "") : `${words.refused}: ${said.error}`;
  $("change").textContent = said.change ?? "";
}

async function loadRegions() {
  const answer = await fetch("about");
  if (!answer.ok) return;
  const { regions = [] } = await answer.json();
  $("known").replaceChildren(...regions.map(({ name }) => Object.assign(document.createElement("option"), { value: name })));
  $("region").addEventListener("change", () => {
    const known = regions.find(({ name }) => name === $("region").value);
    if (known) writeSides(known);
  });
  if (!regions.length) return drawBox();
  $("region").value = regions[0].name;
  writeSides(regions[0]);
}

useLanguage(currentLanguage());
for (const side of SIDES) $(side).addEventListener("input", drawBox);
$("frame").addEventListener("pointerdown", dragging);
onSubmit($("form"), send);
$("picture").alt = words.view;
loadRegions();
watchCamera($("picture"));
