/* The chat of this frame: holds its parts and dispatches socket frames, events of the frame and messages of the host page.
   A part is wired once (`wire…(chat)` in main.js) and registers handlers with `onFrame`, `on` and `onHost`. What a frame
   means is decided in the handlers. */

import { Host } from "./host.js";
import { t } from "./i18n.js";
import { Log } from "./log.js";
import { Outbox } from "./outbox.js";
import { Presence } from "./presence.js";
import { Session } from "./session.js";
import { Socket } from "./socket.js";
import { BrowserStorage } from "./storage.js";

export const part = (name) => document.querySelector(`[data-${name}]`);

export class Chat {
  constructor(key) {
    this.key = key;
    this.frameHandlers = {};
    this.listeners = {};
    this.hostHandlers = {};
    this.opened = false;
    // The home screen is shown in place of the conversation (home.js).
    this.isAtHome = false;
    // The proactive message that the visitor's next message answers (proactive.js).
    this.answers = null;
    this.appearance = { title: "", greeting: "", suggestions: [] };
    this.resetSeen();
    this.host = new Host(this.hostHandlers);
    // In the console's preview the chat is a test: its storage is separate from this browser's visits.
    const ticket = new URLSearchParams(location.search).get("test") || "";
    this.storage = new BrowserStorage(ticket ? `${key} test` : key, (kept) => this.host.tell("keep", { kept }));
    this.session = new Session(key, this.storage, ticket);
    this.session.onGiven = (given) => this.emit("given", given);
    this.socket = new Socket(this.session, {
      after: (id) => (!this.seen.session || this.seen.session === id ? this.seen.last : 0),
      onFrame: (frame) => this.dispatch(frame),
      onState: (state, detail) => this.emit("socket", { state, detail }),
    });
    this.outbox = new Outbox(this.storage, this.socket);
    this.log = new Log(part("log"), { onCite: (...place) => this.emit("cite", place), onSay: (text) => this.say(text) });
    this.presence = new Presence(() => this.log.quiet(t("expired")));
  }

  /* What was received: `last` is the newest seq, `theirs` the newest of bot or agent, `until` where the history ends. */
  resetSeen() {
    this.seen = { seqs: new Set(), last: 0, theirs: 0, until: 0, session: null };
  }

  /* Registers a handler for a type of frame; handlers run in the order in which parts were wired. */
  onFrame(type, fn) {
    (this.frameHandlers[type] ||= []).push(fn);
  }

  /* Recorded frames (with a seq) are handled once, except status frames, which update their card. */
  dispatch(frame) {
    if (frame.seq && frame.type !== "ack" && frame.type !== "ready") {
      if (this.seen.seqs.has(frame.seq) && frame.type !== "status") return;
      this.seen.seqs.add(frame.seq);
      this.seen.last = Math.max(this.seen.last, frame.seq);
    }
    this.handle(frame);
  }

  handle(frame) {
    if (!Object.hasOwn(this.frameHandlers, frame.type)) return;
    for (const fn of this.frameHandlers[frame.type]) fn(frame);
  }

  /* Whether a recorded frame is older than this connection. */
  isHistory({ seq }) {
    return seq <= this.seen.until;
  }

  /* Events of the frame: socket, language, locale, appearance, init, begun, opened, closed, alone, previewed, given, message,
     stored, owner, say, draft, cite, conversation (something needs it in sight), forgotten, renewed. */
  on(event, fn) {
    (this.listeners[event] ||= []).push(fn);
  }

  emit(event, detail) {
    for (const fn of this.listeners[event] || []) fn(detail);
  }

  /* Handlers of messages from the host page, by name (host.js checks where they come from). */
  onHost(name, fn) {
    this.hostHandlers[name] = fn;
  }

  /* Sends a message of the visitor (sendQueue.js). */
  say(text) {
    this.emit("say", text);
  }

  notice(text, duration = 8000) {
    part("notice").replaceChildren(text);
    part("notice").hidden = false;
    clearTimeout(this.noticed);
    this.noticed = setTimeout(() => { part("notice").hidden = true; }, duration);
  }
}
