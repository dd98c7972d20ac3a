// Small pieces of every page: a text that changes, a table of names and values.
import { nameOf } from "./words.js";

const DIGEST = /^[0-9a-f]{32,}$/;

// Writing the same text again would make a screen reader repeat it.
export function write(id, text) {
  const place = document.getElementById(id);
  if (place.textContent !== text) place.textContent = text;
}

export function fill(body, values) {
  body.replaceChildren(...Object.entries(values).map(([name, value]) => row(nameOf(name), value)));
}

export function row(name, value) {
  const line = document.createElement("tr");
  const said = typeof value === "boolean" ? nameOf(`${value}`) : String(value ?? "–");
  for (const text of [name, said]) {
    const shown = DIGEST.test(text) ? `${text.slice(0, 12)}…` : text;
    line.append(Object.assign(document.createElement("td"), { textContent: shown, title: text }));
  }
  return line;
}
