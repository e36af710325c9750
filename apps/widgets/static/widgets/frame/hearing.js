/* What do bot and people say, and is somebody about to? Whole messages, streamed pieces, the typing mark. */

import { capital } from "./presence.js";
import { word } from "./words.js";

const PATIENCE = 60000;
const TYPING_LASTS = 6000;

export function wireHearing(chat) {
  const { log, page, presence } = chat;
  let patience = 0;

  function typing(name, lasts) {
    log.typing(true, name);
    clearTimeout(patience);
    patience = setTimeout(() => log.typing(false), lasts);
  }

  function quiet() {
    clearTimeout(patience);
    log.typing(false);
  }

  function theirs(frame) {
    log.endLive();
    quiet();
    const name = frame.name || (frame.sender === "human" ? capital(presence.name) : "");
    log.said({ ...frame, name });
    chat.seen.theirs = Math.max(chat.seen.theirs, frame.seq);
    chat.happened("said", frame);
    if (chat.isOld(frame)) return;
    log.announce(word("said", { name: name || chat.looks.title, text: frame.text }));
    page.emit("message", { seq: frame.seq, sender: frame.sender });
  }

  chat.hears("ready", () => log.endLive());
  chat.hears("message", (frame) => {
    if (frame.sender === "system") log.quiet(frame.text, frame);
    else if (frame.sender !== "visitor") theirs(frame);
  });
  chat.hears("delta", (frame) => presence.owner === "bot" && log.delta(frame));
  chat.hears("typing", () => typing(presence.name || chat.looks.title, TYPING_LASTS));
  chat.when("stored", (seq) => {
    if (presence.owner === "bot" && chat.seen.theirs <= seq) typing(chat.looks.title, PATIENCE);
  });
  chat.when("line", ({ state }) => state !== "ready" && quiet());
  chat.when("owner", () => {
    log.endLive();
    quiet();
  });
}
