/* Reports over the socket which card or conversation this member has open, and repeats it regularly. The number of the
   last entry that is shown marks the conversation as read so far; a new note is reported too, because it may mention the member. */

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
  const now = viewedSubject();
  if (now?.id !== before?.id || now?.seq !== before?.seq || now?.note !== before?.note) tellAgain();
}

function tellAgain() {
  const now = viewedSubject();
  if (now || before) tell({ type: "look", [now?.what ?? "card"]: now?.id ?? null, seq: now?.seq, note: now?.note });
  before = now;
}

/* The card or conversation that is open, null for none and in a tab that is out of sight. */
export function viewedSubject() {
  const card = document.querySelector("#card[data-open]")?.dataset.card;
  const session = document.querySelector("#thread[data-session]")?.dataset.session;
  if (document.hidden || !(card || session)) return null;
  const { seq, note } = document.querySelector("#log")?.dataset ?? {};
  return card ? { what: "card", id: card } : { what: "session", id: session, seq: Number(seq) || 0, note };
}
