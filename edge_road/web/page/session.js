// What this browser may do: it shows the token once, and then the cookie of its session speaks for it.
export async function rights() {
  const answer = await fetch("session");
  return answer.ok ? answer.json() : { reads: false, changes: false };
}

// For a stream that has broken off: listen again, or sign in first.
export async function comeBack(listen) {
  const session = await rights().catch(() => null); // null: the server is away
  if (session && !session.reads) return goToLogin();
  listen();
}

function goToLogin() {
  location.assign(`login.html?to=${location.pathname.split("/").at(-1)}`);
}

// A change; without a session the way leads to the login page, and from there back.
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const request = fetch(path, { method: "POST", headers, body: JSON.stringify(body ?? {}) });
  const answer = await request.catch((error) => new Response(error.message, { status: 503 })); // nobody is there
  if (answer.status === 401) goToLogin();
  const isJson = answer.headers.get("content-type")?.includes("json");
  return { ok: answer.ok, said: isJson ? await answer.json() : { error: await answer.text() } };
}
