// The token is shown once; it is kept nowhere, and the answer is a cookie that no script can read.
import { onSubmit } from "./forms.js";
import { currentLanguage, useLanguage, words } from "./words.js";

const PAGES = ["", "index.html", "setup.html"]; // an address from outside leads nowhere else
const $ = (id) => document.getElementById(id);

async function logIn(event) {
  event.preventDefault();
  const headers = { "Content-Type": "application/json" };
  const request = fetch("login", { method: "POST", headers, body: JSON.stringify({ token: $("token").value }) });
  const answer = await request.catch((error) => new Response(error.message, { status: 503 })); // nobody is there
  $("token").value = "";
  if (answer.ok) return location.replace(nextPage());
  $("answer").textContent = await refusal(answer);
  $("token").focus();
}

async function refusal(answer) {
  if (answer.status === 401) return words.wrongToken;
  return answer.status === 429 ? `${words.tooOften} ${answer.headers.get("retry-after")} s` : answer.text();
}

function nextPage() {
  const wanted = new URLSearchParams(location.search).get("to") ?? "";
  return PAGES.includes(wanted) ? `./${wanted}` : "./";
}

useLanguage(currentLanguage());
onSubmit($("form"), logIn);
$("token").focus();
