/* What is the visitor asked to press, to fill in or to give? One card a question, at its place in the conversation:
   options, a second press at medium risk, a slide at high; a form; and a field for a secret, which goes to its own address
   and nowhere else.
   Only the record settles a card: a press that was lost with the line is sent again, and counts once. */

import { ENDS } from "./card.js";
import { Decision } from "./decision.js";
import { FormCard } from "./filling.js";
import { SecretField } from "./secret.js";
import { word } from "./words.js";

const ANSWER_WITHIN = 12000;

export function wireCards(chat) {
  const { line, log, page, session } = chat;
  const cards = new Map();
  const pending = new Map();
  let overdue = 0;

  function show(id, frame, card) {
    cards.set(id, card);
    log.place(card.row, frame);
    chat.seen.theirs = Math.max(chat.seen.theirs, frame.seq);
    chat.happened("said", frame);
    if (chat.isOld(frame)) return;
    log.announce(card.title);
    page.emit("message", { seq: frame.seq, sender: frame.sender });
  }

  function press(id, chosen) {
    pending.set(id, { type: "decision_response", request_id: id, ...chosen });
    line.open();
    send(pending.get(id));
  }

  function send(frame) {
    if (!line.send(frame)) return;
    clearTimeout(overdue);
    overdue = setTimeout(() => pending.size && line.reset(), ANSWER_WITHIN);
  }

  function settle(id, state, text) {
    pending.delete(id);
    if (!pending.size) clearTimeout(overdue);
    cards.get(id)?.settle(state, text);
  }

  function decision(frame) {
    const { request_id: id } = frame;
    if (!frame.status) show(id, frame, frame.fields ? new FormCard(frame, chat) : new Decision(frame, (chosen) => press(id, chosen)));
    else {
      settle(id, frame.answers ? "filled" : frame.status, frame.label);
      if (frame.status === "answered" && !chat.isOld(frame)) chat.happened("stored", frame.seq);
    }
  }

  /* A refusal names its card; one that asks for patience is sent again. */
  function refused({ request_id: id, code, retry_after: wait }) {
    if (!id) return;
    if (wait) {
      setTimeout(() => pending.has(id) && send(pending.get(id)), wait * 1000);
      return;
    }
    if (ENDS[code]) settle(id, ENDS[code]);
    else {
      pending.delete(id);
      cards.get(id)?.failed(word(code === "card_not_yours" ? "notYours" : "notAnswered"));
    }
  }

  chat.hears("decision", decision);
  chat.hears("secure_input_request", (frame) => show(frame.ref_id, frame, new SecretField(frame, session)));
  chat.hears("secure_input_completed", ({ ref_id, status }) => settle(ref_id, status === "answered" ? "stored" : status));
  chat.hears("error", refused);
  chat.hears("ready", () => pending.forEach(send));
  chat.when("forgotten", () => {
    cards.forEach((card) => card.end());
    cards.clear();
    pending.clear();
  });
}
