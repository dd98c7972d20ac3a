// Shows the newest picture of an answer that goes on: four bytes of length, then a JPEG, again and again.
const RETRY_MS = 1000;
const STALE_MS = 3000; // a frozen picture would be a lie
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function watchCamera(image) {
  for (;;) {
    if (!document.hidden) await watch(image).catch(() => {});
    image.hidden = true;
    await pause(RETRY_MS);
  }
}

async function watch(image) {
  const connection = new AbortController();
  const answer = await fetch("camera", { signal: connection.signal });
  if (answer.status !== 200) return;
  const reader = answer.body.getReader();
  let rest = new Uint8Array(0);
  while (!document.hidden) {
    const timer = setTimeout(() => connection.abort(), STALE_MS);
    const { done, value } = await reader.read();
    clearTimeout(timer);
    if (done) return;
    rest = showNewest(image, joined(rest, value));
  }
  connection.abort();
}

// Returns what came after the last whole picture.
function showNewest(image, bytes) {
  let picture = null;
  while (bytes.length >= 4) {
    const end = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
    if (bytes.length < end) break;
    picture = bytes.subarray(4, end);
    bytes = bytes.subarray(end);
  }
  if (picture) show(image, picture);
  return bytes;
}

function show(image, picture) {
  image.hidden = picture.length === 0;
  if (image.hidden) return;
  const old = image.src;
  image.src = URL.createObjectURL(new Blob([picture], { type: "image/jpeg" }));
  if (old) URL.revokeObjectURL(old);
}

function joined(one, other) {
  if (!one.length) return other;
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
