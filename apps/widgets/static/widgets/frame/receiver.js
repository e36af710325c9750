/* Shows messages of the bot and of agents: whole messages, streamed pieces, the typing indicator. */

import { t } from "./i18n.js";
import { capital } from "./presence.js";

const PATIENCE = 60000;
const TYPING_LASTS = 6000;

export function wireReceiver(chat) {
  const { host, log, presence } = chat;
  let patience = 0;

  function typing(name, lasts, isPerson = false) {
    log.typing(true, name, isPerson);
    clearTimeout(patience);
    patience = setTimeout(() => log.typing(false), lasts);
  }

  function quiet() {
    clearTimeout(patience);
    log.typing(false);
  }

  function showMessage(frame) {
    log.endLive();
    quiet();
    const name = frame.name || (frame.sender === "human" ? capital(presence.name) : "");
    log.message({ ...frame, name });
    chat.seen.theirs = Math.max(chat.seen.theirs, frame.seq);
    chat.emit("message", frame);
    // A proactive message was read out where it was shown.
    if (chat.isHistory(frame) || frame.proactive_message) return;
    log.announce(t("said", { name: name || chat.appearance.title, text: frame.text }));
    host.emit("message", { seq: frame.seq, sender: frame.sender });
  }

  chat.onFrame("ready", ({ read }) => {
    log.endLive();
    log.markRead(read || 0);
  });
  chat.onFrame("read", ({ up_to: upTo }) => log.markRead(upTo));
  chat.onFrame("message", (frame) => {
    if (frame.sender === "system") log.quiet(frame.text, frame);
    else if (frame.sender !== "visitor") showMessage(frame);
  });
  chat.onFrame("delta", (frame) => presence.owner === "bot" && log.delta(frame));
  chat.onFrame("typing", () => typing(capital(presence.name) || chat.appearance.title, TYPING_LASTS, presence.owner === "human"));
  chat.on("stored", (seq) => {
    if (presence.owner === "bot" && chat.seen.theirs <= seq) typing(chat.appearance.title, PATIENCE);
  });
  chat.on("socket", ({ state }) => state !== "ready" && quiet());
  chat.on("owner", () => {
    log.endLive();
    quiet();
  });
}
