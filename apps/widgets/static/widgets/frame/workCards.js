/* The progress of the visitor's requests: one card per work item, updated in place. It keeps what the request changes, so that
   the outcome is read beside it. */

import { el } from "./dom.js";
import { lasting, t } from "./i18n.js";

const PHASES = {
  waiting: ["waiting", "pending", "proposed", "needs_approval", "awaiting_approval"],
  running: ["running", "approved", "dispatched", "queued", "healthy"],
  done: ["done"],
  declined: ["declined", "cancelled", "expired", "withdrawn"],
  handed: ["handed_over"],
  stopped: ["failed", "stuck", "blocked", "paused", "refused"],
};
const TONES = { waiting: "warn", running: "busy", done: "ok", declined: "flat", handed: "warn", stopped: "bad" };

/* A rejection or an expired approval is not a failure; nor is work that was handed over and cannot be verified. */
const DECLINES = ["approval_denied", "approval_expired"];

function phase({ status, reason }) {
  if (DECLINES.includes(reason)) return "declined";
  if (PHASES.handed.includes(reason)) return "handed";
  return Object.keys(PHASES).find((name) => PHASES[name].includes(status)) || "running";
}

export class WorkCards {
  constructor(log) {
    this.log = log;
    this.cards = new Map();
  }

  /* A status frame: {work_item_id, status, text, reason?, title?, next_steps?, changes?, usual_seconds?, seq}. */
  show(frame) {
    const known = this.cards.get(frame.work_item_id);
    if (known && frame.seq && frame.seq < known.seq) return;
    const card = known || { title: t("work"), row: el("div", { class: "row" }) };
    card.title = frame.title || card.title;
    card.seq = frame.seq || card.seq || 0;
    const state = phase(frame);
    card.changes = frame.changes || card.changes || [];
    const text = state === "waiting" && card.changes.length ? t("waitingText") : detail(frame.text || "", card.title, state);
    const usual = state === "waiting" && frame.usual_seconds ? t("usually", { time: lasting(Math.max(60, frame.usual_seconds)) }) : "";
    card.row.replaceChildren(face(card, state, [text, usual].filter(Boolean).join(" "), frame.next_steps || []));
    // What changed last is in sight: a card that is out of it goes to where its news came.
    if (!known || !this.log.isInSight(card.row)) this.log.place(card.row, frame);
    this.cards.set(frame.work_item_id, card);
    this.log.announce(`${card.title}: ${t(state)}. ${text}`);
  }

  clear() {
    this.cards.clear();
  }
}

/* What the text says beyond the title and the state, which the card shows already. */
function detail(text, title, state) {
  const name = title.replace(/\.+$/, "");
  const [before, ...rest] = name ? text.split(name) : [text];
  const said = rest.length ? before.replace(/\s*:\s*$/, "") + rest.join(name) : text;
  return !said || said.startsWith(t(state)) ? t(`${state}Text`) : said;
}

/* A value before is crossed out and told to a screen reader as such. */
function change({ label, before, after }) {
  const old = before ? [el("span", { class: "hidden" }, t("changeBefore")), " ", el("del", { dir: "auto" }, before), " ", el("span", { class: "hidden" }, t("changeAfter")), " "] : [];
  return el("div", {}, label ? el("dt", { dir: "auto" }, label) : null, el("dd", {}, ...old, el("ins", { dir: "auto" }, after)));
}

function face({ title, changes }, state, text, steps) {
  return el("section", { class: "await", "data-phase": state, "aria-label": title },
    el("div", { class: "line" }, el("b", {}, title), el("span", { class: `mark ${TONES[state]}` }, t(state))),
    changes.length ? el("dl", { class: "changes" }, ...changes.map(change)) : null,
    el("p", { class: `line quiet step ${TONES[state]}` }, el("span", {}, text)),
    steps.length ? el("ul", { class: "quiet" }, ...steps.map((step) => el("li", {}, step))) : null);
}

export function wireWorkCards(chat) {
  const cards = new WorkCards(chat.log);
  chat.onFrame("status", (frame) => {
    if (frame.work_item_id) cards.show(frame);
    else if (frame.seq) chat.log.quiet(frame.text, frame);
    else chat.log.announce(frame.text);
  });
  chat.on("forgotten", () => cards.clear());
}
