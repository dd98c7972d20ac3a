// Ten minutes of states and probabilities, drawn on a canvas.
const SPAN_MS = 600_000;
const STRIPE_PX = 18;
const HOLDS_MS = 3000; // after a longer silence nobody knows: nothing is drawn
export const STATES = ["dry", "wet", "icy"];
const samples = []; // {at, state, probabilities}; at most four a second

export function remember(at, state, probabilities) {
  const last = samples.at(-1);
  if (last && at - last.at < 250 && last.state === state) return;
  samples.push({ at, state, probabilities });
  while (samples.length && samples[0].at < at - SPAN_MS) samples.shift();
}

// What the server remembers takes the place of what this page has seen since then.
export function recall(past, now) {
  if (!past.length) return;
  const begin = now - 1000 * past[0][0];
  const own = samples.filter((sample) => sample.at < begin);
  const named = ([ago_s, state, shares]) => ({
    at: now - 1000 * ago_s, state, probabilities: Object.fromEntries((shares ?? []).map((share, i) => [STATES[i], share])),
  });
  samples.splice(0, samples.length, ...own, ...past.map(named));
}

export function draw(canvas, now, words) {
  const width = canvas.clientWidth, height = 150, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.body);
  const colour = (name) => style.getPropertyValue(`--${name}`);
  const x = (at) => width * (1 - (now - at) / SPAN_MS);
  const y = (share) => 4 + (height - STRIPE_PX - 24) * (1 - share);
  grid(pen, width, height, y, colour);
  stripe(pen, now, x, height, colour);
  for (const name of STATES) line(pen, name, x, y, colour);
  canvas.title = summary(words);
}

function grid(pen, width, height, y, colour) {
  pen.strokeStyle = colour("line");
  pen.fillStyle = colour("soft");
  pen.font = "11px system-ui";
  for (const share of [0, 0.5, 1]) {
    pen.beginPath();
    pen.moveTo(0, y(share));
    pen.lineTo(width, y(share));
    pen.stroke();
    pen.fillText(`${share * 100} %`, 2, y(share) + (share ? 11 : -3));
  }
  for (let minute = 2; minute < 10; minute += 2) {
    pen.fillText(`−${minute} min`, width * (1 - minute / 10) - 18, height - STRIPE_PX - 6);
  }
}

function stripe(pen, now, x, height, colour) {
  for (let i = 0, end; i < samples.length; i = end) {
    end = i + 1; // equal neighbours are one bar: seams between many would look like changes
    while (samples[end]?.state === samples[i].state && !comesLate(end)) end += 1;
    const from = x(samples[i].at), to = x(Math.min(samples[end]?.at ?? now, samples[end - 1].at + HOLDS_MS));
    pen.fillStyle = colour(samples[i].state);
    pen.globalAlpha = samples[i].state === "unknown" ? 0.35 : 1;
    pen.fillRect(from, height - STRIPE_PX, Math.max(to - from, 0.5), STRIPE_PX);
  }
  pen.globalAlpha = 1;
}

const comesLate = (i) => samples[i].at - samples[i - 1].at > HOLDS_MS;

const DASHES = { dry: [], wet: [6, 3], icy: [2, 2] };

function line(pen, name, x, y, colour) {
  pen.strokeStyle = colour(name);
  pen.lineWidth = 2;
  pen.setLineDash(DASHES[name]);
  pen.beginPath();
  let isDown = false;
  for (const [i, { at, probabilities }] of samples.entries()) {
    const share = probabilities[name];
    if (share === undefined) { isDown = false; continue; }
    isDown &&= !comesLate(i);
    isDown ? pen.lineTo(x(at), y(share)) : pen.moveTo(x(at), y(share));
    isDown = true;
  }
  pen.stroke();
  pen.setLineDash([]);
}

function summary(words) {
  const seen = [...new Set(samples.map((sample) => words[sample.state]))];
  return `${words.past}: ${seen.join(", ") || "–"}`;
}
