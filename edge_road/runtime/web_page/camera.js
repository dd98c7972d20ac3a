// Shows the newest picture. The next one is asked for when the last one has come: a slow link gets fewer, never a queue.
const PERIOD_MS = 200;
const RETRY_MS = 1000;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function watchCamera(image) {
  for (;;) {
    const begin = performance.now();
    const isThere = document.hidden || (await showPicture(image));
    await pause(isThere ? Math.max(PERIOD_MS - (performance.now() - begin), 50) : RETRY_MS);
  }
}

async function showPicture(image) {
  try {
    const answer = await fetch("snapshot.jpg", { cache: "no-store" });
    image.hidden = answer.status !== 200;
    if (image.hidden) return false;
    const old = image.src;
    image.src = URL.createObjectURL(await answer.blob());
    if (old) URL.revokeObjectURL(old);
    return true;
  } catch {
    image.hidden = true;
    return false;
  }
}
