// The regions that are judged, and on demand how much each of their parts spoke for the state.
import { words } from "./words.js";

const PERIOD_MS = 1000;
const SVG = "http://www.w3.org/2000/svg";

function rectangle({ left, top, right, bottom }, looks = {}) {
  const box = document.createElementNS(SVG, "rect");
  const sides = { x: left, y: top, width: right - left, height: bottom - top };
  for (const [name, value] of Object.entries({ ...sides, ...looks })) box.setAttribute(name, value);
  return box;
}

export function drawRegions(svg, regions) {
  svg.replaceChildren(...regions.map((region) => rectangle(region)));
}

export function watchParts(box, svg, said) {
  const look = () => box.checked && !document.hidden && showParts(box, svg, said);
  setInterval(look, PERIOD_MS);
  box.addEventListener("change", () => {
    svg.querySelectorAll(".part").forEach((part) => part.remove());
    said.textContent = box.checked ? words.partsComing : "";
    look();
  });
}

async function showParts(box, svg, said) {
  const answer = await fetch("parts").catch(() => null);
  if (!answer?.ok) return;
  const { regions, seconds } = await answer.json();
  if (!box.checked) return; // meanwhile
  drawRegions(svg, regions);
  svg.prepend(...regions.flatMap(cells));
  const isThere = regions.some((region) => region.shares);
  said.textContent = isThere ? words.partsHint.replace("{s}", seconds.toFixed(0)) : words.partsComing;
}

// Each share is between 0 (nothing) and 1 (the most that any part did).
function cells({ left, top, right, bottom, shares }) {
  if (!shares) return [];
  const height = (bottom - top) / shares.length, width = (right - left) / shares[0].length;
  return shares.flatMap((row, i) => row.map((share, j) => {
    const x = left + j * width, y = top + i * height;
    return rectangle({ left: x, top: y, right: x + width, bottom: y + height }, { class: "part", "fill-opacity": 0.7 * share });
  }));
}
