// Small pieces of every page: a text that changes, a table of names and values.
const DIGEST = /^[0-9a-f]{32,}$/;

// Writing the same text again would make a screen reader repeat it.
export function write(id, text) {
  const place = document.getElementById(id);
  if (place.textContent !== text) place.textContent = text;
}

export function fill(body, values) {
  body.replaceChildren(...Object.entries(values).map(([name, value]) => row(name.replaceAll("_", " "), value)));
}

export function row(name, value) {
  const line = document.createElement("tr");
  for (const text of [name, value === null ? "–" : String(value)]) {
    const shown = DIGEST.test(text) ? `${text.slice(0, 12)}…` : text;
    line.append(Object.assign(document.createElement("td"), { textContent: shown, title: text }));
  }
  return line;
}
