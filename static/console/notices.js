/* Notices of the member: a sound and a desktop notification, as they chose (the server says so in each frame). Of several
   tabs one shows a notice; a tab that has its conversation or card in sight claims it and stays silent. */

import { afterPaint } from "./after_paint.js";
import { viewedSubject } from "./company.js";
import { text } from "./texts.js";
import { registered } from "./worker.js";

const SEEN = "silas-notices";
const KEPT = 100;
/* Other tabs leave the one that has the conversation in sight this long to claim the notice. */
const YIELD = 300;
const BETWEEN_SOUNDS = 3000;
/* Two notes of a bell: their frequency in Hz, and when they begin in seconds. */
const NOTES = [[880, 0], [1174.7, 0.12]];
const RING = 0.35;

let audio = null;
let lastRing = 0;

export function watchNotices() {
  document.addEventListener("silas:notice", (event) => receive(event.detail));
  // Browsers play nothing before the first press on a page.
  for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, () => afterPaint(prepare), { once: true });
  document.addEventListener("click", (event) => {
    if (event.target.id === "try-sound") ring();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("#notices-form [name=desktop]") && event.target.checked) askForDesktop(event.target);
  });
  document.addEventListener("htmx:afterSettle", sayIfBlocked);
  sayIfBlocked();
}

async function receive(notice) {
  const now = viewedSubject();
  const isInSight = now?.id === notice.id;
  if (!isInSight) await new Promise((done) => setTimeout(done, YIELD));
  if (!(await claim(notice.key)) || isInSight) return;
  if (notice.sound) ring();
  if (notice.desktop) show(notice);
}

/* True for the first tab of this browser that asks. */
async function claim(key) {
  const take = () => {
    const seen = JSON.parse(localStorage.getItem(SEEN) ?? "[]");
    if (seen.includes(key)) return false;
    localStorage.setItem(SEEN, JSON.stringify([...seen, key].slice(-KEPT)));
    return true;
  };
  try {
    return await (navigator.locks ? navigator.locks.request(SEEN, take) : take());
  } catch {
    return true;
  }
}

async function prepare() {
  audio ??= new AudioContext();
  if (audio.state === "suspended") await audio.resume().catch(() => {});
}

/* What cannot be played now is not played: all that waits for the first press would sound at it, at once. */
async function ring() {
  await Promise.race([prepare(), new Promise((done) => setTimeout(done, YIELD))]);
  if (audio.state !== "running" || Date.now() - lastRing < BETWEEN_SOUNDS) return;
  lastRing = Date.now();
  for (const [frequency, after] of NOTES) {
    const note = new OscillatorNode(audio, { frequency });
    const volume = new GainNode(audio, { gain: 0.15 });
    const start = audio.currentTime + after;
    volume.gain.setValueAtTime(0.15, start);
    volume.gain.exponentialRampToValueAtTime(0.001, start + RING);
    note.connect(volume).connect(audio.destination);
    note.start(start);
    note.stop(start + RING);
  }
}

/* The service worker opens the address when the notification is pressed. A push about the same card has the same tag. */
async function show({ kind, url }) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  try {
    await registered();
    const worker = await navigator.serviceWorker.ready;
    await worker.showNotification(text(`notice_${kind}`), { tag: url, data: { url } });
  } catch {
    // The list and the title say it too.
  }
}

async function askForDesktop(box) {
  const said = document.getElementById("desktop-said");
  if (!("Notification" in window) || !navigator.serviceWorker) {
    box.checked = false;
    said.textContent = text("no_desktop");
    return;
  }
  said.textContent = text("desktop_asking");
  const answer = await Notification.requestPermission();
  box.checked = answer === "granted";
  said.textContent = text(answer === "granted" ? "desktop_allowed" : "desktop_blocked");
}

function sayIfBlocked() {
  const box = document.querySelector("#notices-form [name=desktop]");
  const said = document.getElementById("desktop-said");
  if (!box?.checked || !said || said.textContent) return;
  if (!("Notification" in window)) said.textContent = text("no_desktop");
  else if (Notification.permission === "denied") said.textContent = text("desktop_blocked");
}
