// A map without tiles: tracks in a plane that touches the earth in their middle, with a grid and a scale.
const EDGE = 24, EARTH_M = 6371000, LEAST_M = 500;
const RAD = Math.PI / 180;
export const SIGNS = { dry: "●", wet: "≈", icy: "❄", unknown: "?" };

export function makeMap(svg, choose) {
  return (vehicles, tracks, chosen) => {
    const points = vehicles.filter((v) => v.position).map((v) => v.position);
    for (const track of tracks.values()) points.push(...track);
    svg.toggleAttribute("hidden", points.length === 0);
    if (points.length === 0) return;
    const plane = fit(points, svg.clientWidth || 800);
    svg.setAttribute("viewBox", `0 0 ${plane.width} ${plane.height}`);
    const parts = [...grid(plane), scale(plane)];
    for (const vehicle of vehicles) {
      const part = drawVehicle(vehicle, tracks.get(vehicle.vehicle) ?? [], plane, choose);
      if (!part) continue;
      part.classList.toggle("chosen", vehicle.vehicle === chosen);
      parts.push(part);
    }
    const last = parts.findIndex((part) => part.classList.contains("chosen"));
    if (last >= 0) parts.push(...parts.splice(last, 1));
    svg.replaceChildren(...parts);
  };
}

// Degrees to drawing units; longitudes are counted from the middle, so that the date line is no edge.
function fit(points, width) {
  const height = 0.75 * width;
  const first = points[0][1];
  const east = (longitude) => ((longitude - first + 540) % 360) - 180;
  const [low, high] = range(points.map((p) => p[0])), [west, eastmost] = range(points.map((p) => east(p[1])));
  const middle = { latitude: (low + high) / 2, east: (west + eastmost) / 2 };
  const shrink = Math.max(0.05, Math.cos(middle.latitude * RAD)); // at a pole meridians would have no distance
  const across_m = Math.max(LEAST_M, (eastmost - west) * RAD * EARTH_M * shrink);
  const up_m = Math.max(LEAST_M, (high - low) * RAD * EARTH_M);
  const perMetre = Math.min((width - 2 * EDGE) / across_m, (height - 2 * EDGE) / up_m);
  const perDegree = perMetre * RAD * EARTH_M;
  return {
    width, height, perMetre, perDegree, shrink, middle, first,
    x: (longitude) => width / 2 + (east(longitude) - middle.east) * perDegree * shrink,
    y: (latitude) => height / 2 - (latitude - middle.latitude) * perDegree,
  };
}

function range(numbers) {
  let low = Infinity, high = -Infinity;
  for (const number of numbers) { low = Math.min(low, number); high = Math.max(high, number); }
  return [low, high];
}

// One path for each stretch of one state; a stretch begins where the one before it ends.
function drawVehicle(vehicle, track, plane, choose) {
  const here = vehicle.position ?? track.at(-1)?.slice(0, 2);
  if (!here) return null;
  const group = make("g", {});
  let from = 0;
  for (let to = 1; to <= track.length; to++) {
    if (to < track.length && track[to][2] === track[from][2]) continue;
    const stretch = track.slice(Math.max(0, from - 1), to);
    const line = stretch.map(([latitude, longitude]) => `${plane.x(longitude).toFixed(1)},${plane.y(latitude).toFixed(1)}`);
    const path = make("path", { d: `M${line.join("L")}` });
    path.dataset.state = track[from][2];
    group.append(path);
    from = to;
  }
  const x = plane.x(here[1]), y = plane.y(here[0]);
  const dot = make("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: plane.width > 500 ? 9 : 6 });
  dot.dataset.state = vehicle.state;
  dot.append(Object.assign(make("title", {}), { textContent: `${vehicle.vehicle}: ${vehicle.state}` }));
  dot.addEventListener("click", () => choose(vehicle.vehicle));
  const sign = make("text", { class: "sign", x: x.toFixed(1), y: y.toFixed(1), "text-anchor": "middle", dy: "0.35em" });
  sign.textContent = SIGNS[vehicle.state];
  group.append(dot, sign);
  return group;
}

function grid(plane) {
  const { width, height } = plane;
  const step = niceBelow((height / 3) / plane.perDegree);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const parts = [];
  const top = plane.middle.latitude + height / 2 / plane.perDegree, bottom = top - height / plane.perDegree;
  for (let latitude = Math.ceil(bottom / step) * step; latitude < top; latitude += step) {
    const y = plane.y(latitude);
    parts.push(make("line", { x1: 0, x2: width, y1: y, y2: y }), label(4, y - 3, `${latitude.toFixed(digits)}°`));
  }
  const middle = plane.first + plane.middle.east, half = width / 2 / plane.perDegree / plane.shrink;
  for (let longitude = Math.ceil((middle - half) / step) * step; longitude < middle + half; longitude += step) {
    const x = plane.x(longitude);
    parts.push(make("line", { x1: x, x2: x, y1: 0, y2: height }), label(x + 3, 12, `${longitude.toFixed(digits)}°`));
  }
  return parts;
}

function scale(plane) {
  const metres = niceBelow(plane.width / 4 / plane.perMetre), length = metres * plane.perMetre;
  const group = make("g", {}), y = plane.height - 10, x = plane.width - 12;
  group.append(make("line", { class: "scale", x1: x - length, x2: x, y1: y, y2: y }));
  const text = make("text", { x: x - length / 2, y: y - 6, "text-anchor": "middle" });
  text.textContent = metres >= 1000 ? `${metres / 1000} km` : `${metres} m`;
  group.append(text);
  return group;
}

function label(x, y, text) {
  const part = make("text", { class: "quiet", x, y });
  part.textContent = text;
  return part;
}

// 1, 2 or 5 times a power of ten.
function niceBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([5, 2, 1].find((digit) => digit * power <= value) ?? 1) * power;
}

function make(name, attributes) {
  const part = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
  return part;
}
