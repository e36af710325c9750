/* Who looks at the same card? Tells over the page's line which one is before this person, now and then again. */

import { tell } from "./live.js";

const EVERY = 20000;
let before = null;

export function watchCompany() {
  document.addEventListener("htmx:afterSettle", say);
  document.addEventListener("visibilitychange", say);
  document.addEventListener("silas:ready", tellAgain);
  setInterval(tellAgain, EVERY);
}

function say() {
  if (looked() !== before) tellAgain();
}

function tellAgain() {
  const now = looked();
  if (now || before) tell({ type: "look", card: now });
  before = now;
}

function looked() {
  return document.hidden ? null : document.querySelector("#card[data-open]")?.dataset.card ?? null;
}
