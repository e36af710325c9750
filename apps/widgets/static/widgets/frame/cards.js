/* Shows one card per question to the visitor: options, a form, or a field for a secret, which is posted to its own URL.
   Only a recorded frame settles a card. An answer that was lost with the connection is sent again and counts once. */

import { ENDS } from "./card.js";
import { Decision } from "./decision.js";
import { FormCard } from "./formCard.js";
import { t } from "./i18n.js";
import { SecretField } from "./secret.js";

const ANSWER_WITHIN = 12000;

export function wireCards(chat) {
  const { host, log, session, socket } = chat;
  const cards = new Map();
  const pending = new Map();
  let overdue = 0;

  function show(id, frame, card) {
    cards.set(id, card);
    log.place(card.row, frame);
    chat.seen.theirs = Math.max(chat.seen.theirs, frame.seq);
    chat.emit("message", frame);
    if (chat.isHistory(frame)) return;
    log.announce(card.title);
    host.emit("message", { seq: frame.seq, sender: frame.sender });
  }

  function press(id, chosen) {
    pending.set(id, { type: "decision_response", request_id: id, ...chosen });
    socket.open();
    send(pending.get(id));
  }

  function send(frame) {
    if (!socket.send(frame)) return;
    clearTimeout(overdue);
    overdue = setTimeout(() => pending.size && socket.reset(), ANSWER_WITHIN);
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
      if (frame.status === "answered" && !chat.isHistory(frame)) chat.emit("stored", frame.seq);
    }
  }

  /* An error names its card; after `retry_after` the answer is sent again. */
  function refused({ request_id: id, code, retry_after: wait }) {
    if (!id) return;
    if (wait) {
      setTimeout(() => pending.has(id) && send(pending.get(id)), wait * 1000);
      return;
    }
    if (ENDS[code]) settle(id, ENDS[code]);
    else {
      pending.delete(id);
      cards.get(id)?.failed(t(code === "card_not_yours" ? "notYours" : "notAnswered"));
    }
  }

  chat.onFrame("decision", decision);
  chat.onFrame("secure_input_request", (frame) => show(frame.ref_id, frame, new SecretField(frame, session)));
  chat.onFrame("secure_input_completed", ({ ref_id, status }) => settle(ref_id, status === "answered" ? "stored" : status));
  chat.onFrame("error", refused);
  chat.onFrame("ready", () => pending.forEach(send));
  chat.on("forgotten", () => {
    cards.forEach((card) => card.end());
    cards.clear();
    pending.clear();
  });
}
