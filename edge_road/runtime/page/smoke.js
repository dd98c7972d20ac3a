// The self-test of the bundle: its last result for everybody, a new one for whoever has signed in.
import { post } from "./session.js";
import { row, write } from "./table.js";
import { words } from "./words.js";

const percent = (share) => `${(100 * share).toFixed(0)} %`;

export async function showLastSmoke() {
  const answer = await fetch("smoke");
  if (!answer.ok) return;
  const { running, newest } = await answer.json();
  if (newest) showResult(newest);
  if (running) write("smoke-verdict", words.running);
}

export async function runSmoke(event) {
  event.preventDefault();
  const button = document.getElementById("run-smoke");
  button.disabled = true;
  write("smoke-verdict", words.running);
  const { ok, said } = await post("smoke");
  button.disabled = false;
  if (ok) showResult(said);
  else write("smoke-verdict", `${words.refused}: ${said.error}`);
}

function showResult({ passed, checks, at }) {
  const when = at ? ` (${new Date(at).toLocaleTimeString()})` : "";
  write("smoke-verdict", `${passed ? `✓ ${words.passed}` : `✗ ${words.failed}`}${when}`);
  const line = ({ name, accuracy, least }) => row(name.replaceAll("_", " "), `${percent(accuracy)} (${words.least} ${percent(least)})`);
  document.getElementById("smoke").replaceChildren(...checks.map(line));
}
