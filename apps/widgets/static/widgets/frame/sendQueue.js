/* Shows the visitor's messages at once, sends them, and shows which were acknowledged or refused. */

import { part } from "./chat.js";
import { Composer } from "./composer.js";
import { t } from "./i18n.js";

export function wireSendQueue(chat) {
  const { host, log, outbox, presence, socket } = chat;
  const rows = new Map();
  const composer = new Composer(part("composer"), {
    onSay: say,
    onTyping: () => socket.send({ type: "typing" }),
    onTooLong: () => chat.notice(t("tooLong")),
  });

  function say(text) {
    socket.open();
    show(outbox.add(text, chat.answers));
    chat.answers = null;
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

  /* A recorded message of the visitor: our own optimistic row, or one from another window. */
  function showRecorded(frame) {
    const own = frame.client_id ?? outbox.items.find(({ text }) => text === frame.text)?.client_id;
    const row = rows.get(own);
    if (!row) {
      log.visitor(frame.text, frame);
      return;
    }
    settle(own);
    log.place(row, frame);
  }

  /* A refused message is not sent again; a late acknowledgement still finds its row. */
  function onError({ code, retry_after: wait, request_id: about, client_id: refused = outbox.items[0]?.client_id }) {
    if (about) return;
    if (code === "too_many_windows") {
      chat.notice(t("windows"), 20000);
      return;
    }
    if (wait) {
      const seconds = Math.max(1, Math.ceil(wait));
      chat.notice(t("busy", { seconds }), seconds * 1000);
      outbox.sendAfter(seconds);
      return;
    }
    log.typing(false);
    outbox.settle(refused);
    chat.notice(t(code === "conversation_full" ? "full" : "failed"), 12000);
    host.emit("error", { code });
  }

  function nameField() {
    const label = presence.owner === "human" ? t("writeTo", { name: presence.name }) : t("write");
    composer.field.placeholder = label;
    composer.field.setAttribute("aria-label", label);
    composer.button.setAttribute("aria-label", t("send"));
  }

  chat.onFrame("ready", () => outbox.sendAll());
  chat.onFrame("ack", ({ client_id, seq }) => {
    const row = rows.get(client_id);
    chat.seen.seqs.add(seq);
    settle(client_id);
    if (row) log.place(row, { seq });
    chat.emit("stored", seq);
  });
  chat.onFrame("message", (frame) => frame.sender === "visitor" && showRecorded(frame));
  chat.onFrame("error", onError);
  chat.on("say", say);
  chat.on("draft", (text) => composer.draft(text));
  chat.on("begun", () => outbox.items.forEach(show));
  chat.on("opened", ({ quietly }) => quietly || composer.focus());
  chat.on("forgotten", () => rows.clear());
  chat.on("renewed", () => outbox.clear());
  for (const event of ["language", "owner"]) chat.on(event, nameField);
}
