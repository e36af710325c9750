/* What becomes of the visitor's words? Shown at once, sent, acknowledged; refused ones are said to be. */

import { part } from "./chat.js";
import { Composer } from "./composer.js";
import { word } from "./words.js";

export function wireSaying(chat) {
  const { line, log, outbox, page, presence } = chat;
  const rows = new Map();
  const composer = new Composer(part("composer"), {
    onSay: say,
    onTyping: () => line.send({ type: "typing" }),
    onTooLong: () => chat.notice(word("tooLong")),
  });

  function say(text) {
    line.open();
    show(outbox.add(text));
  }

  function show(item) {
    const row = log.visitor(item.text, { pending: true, timestamp: new Date().toISOString() });
    rows.set(item.client_id, row);
    setTimeout(() => rows.has(item.client_id) && log.mark(row, true), 3000);
  }

  function settle(client_id) {
    const row = rows.get(client_id);
    if (row) log.mark(row, false);
    rows.delete(client_id);
    outbox.settle(client_id);
  }

  /* From the record: our own optimistic row, or one said in another window. */
  function mine(frame) {
    const own = frame.client_id ?? outbox.items.find(({ text }) => text === frame.text)?.client_id;
    const row = rows.get(own);
    if (!row) {
      log.visitor(frame.text, frame);
      return;
    }
    settle(own);
    log.place(row, frame);
  }

  /* A refused message is not sent again; a late acknowledgement would still find its row. */
  function complain({ code, retry_after: wait, request_id: about, client_id: refused = outbox.items[0]?.client_id }) {
    if (about) return;
    if (code === "too_many_windows") {
      chat.notice(word("windows"), 20000);
      return;
    }
    if (wait) {
      const seconds = Math.max(1, Math.ceil(wait));
      chat.notice(word("busy", { seconds }), seconds * 1000);
      outbox.sendAfter(seconds);
      return;
    }
    log.typing(false);
    outbox.settle(refused);
    chat.notice(word(code === "conversation_full" ? "full" : "failed"), 12000);
    page.emit("error", { code });
  }

  function nameField() {
    const label = presence.owner === "human" ? word("writeTo", { name: presence.name }) : word("write");
    composer.field.placeholder = label;
    composer.field.setAttribute("aria-label", label);
    composer.button.setAttribute("aria-label", word("send"));
  }

  chat.hears("ready", () => outbox.sendAll());
  chat.hears("ack", ({ client_id, seq }) => {
    const row = rows.get(client_id);
    chat.seen.seqs.add(seq);
    settle(client_id);
    if (row) log.place(row, { seq });
    chat.happened("stored", seq);
  });
  chat.hears("message", (frame) => frame.sender === "visitor" && mine(frame));
  chat.hears("error", complain);
  chat.when("say", say);
  chat.when("begun", () => outbox.items.forEach(show));
  chat.when("opened", ({ quietly }) => quietly || composer.focus());
  chat.when("forgotten", () => rows.clear());
  chat.when("renewed", () => outbox.clear());
  for (const event of ["language", "owner"]) chat.when(event, nameField);
}
