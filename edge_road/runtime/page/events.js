// The list of events, newest first, with what the camera saw where that is kept.
import { nameOf, words } from "./words.js";

const MOST_EVENTS = 50;
const list = document.getElementById("events");

export function showEvents(events) {
  list.replaceChildren();
  for (const event of events) addEvent(event);
}

export function addEvent({ kind, at, text, state, reasons, picture, boot_id }) {
  const item = document.createElement("li");
  const time = Object.assign(document.createElement("time"), { textContent: new Date(at ?? Date.now()).toLocaleTimeString() });
  const said = text?.split(", ") ?? [words[state] ?? state, ...(reasons ?? [])].filter(Boolean);
  const sentence = `${nameOf(kind ?? "")} ${said.map(nameOf).join(", ")}`;
  if (picture) item.append(thumbnail(`pictures/${picture}.jpg?${boot_id}`, sentence));
  item.append(time, sentence);
  list.prepend(item);
  while (list.childElementCount > MOST_EVENTS) list.lastChild.remove();
  document.getElementById("no-events").hidden = true;
}

// A new daemon counts its pictures anew, and a browser asks only once for the same address.
function thumbnail(address, sentence) {
  const link = Object.assign(document.createElement("a"), { href: address, target: "_blank" });
  const image = Object.assign(document.createElement("img"), { loading: "lazy", alt: `${words.view}: ${sentence}`, src: link.href });
  link.append(image);
  return link;
}
