/* The one chat of this frame: its parts, who hears which frame of the socket, and what happens to it.
   A part is wired once (`wire…(chat)` in main.js): it says what it `hears`, what it does `when` something happens and what
   the page may `ask`. Nothing here knows what a frame means. */

import { Line } from "./line.js";
import { Log } from "./log.js";
import { Memory } from "./memory.js";
import { Outbox } from "./outbox.js";
import { Page } from "./page.js";
import { Presence } from "./presence.js";
import { Session } from "./session.js";
import { word } from "./words.js";

export const part = (name) => document.querySelector(`[data-${name}]`);

export class Chat {
  constructor(key) {
    this.key = key;
    this.hearers = {};
    this.listeners = {};
    this.asked = {};
    this.opened = false;
    this.looks = { title: "", greeting: "", suggestions: [] };
    this.unsee();
    this.page = new Page(this.asked);
    this.memory = new Memory(key, (kept) => this.page.tell("keep", { kept }));
    this.session = new Session(key, this.memory);
    this.line = new Line(this.session, {
      after: (id) => (!this.seen.session || this.seen.session === id ? this.seen.last : 0),
      onFrame: (frame) => this.hear(frame),
      onState: (state, detail) => this.happened("line", { state, detail }),
    });
    this.outbox = new Outbox(this.memory, this.line);
    this.log = new Log(part("log"), { onCite: (...place) => this.happened("cite", place), onSay: (text) => this.say(text) });
    this.presence = new Presence(() => this.log.quiet(word("expired")));
  }

  /* What has come so far: `last` is the newest seq, `theirs` the newest of bot or person, `until` where catching up ends. */
  unsee() {
    this.seen = { seqs: new Set(), last: 0, theirs: 0, until: 0, session: null };
  }

  /* Several parts may hear one type of frame, in the order in which they were wired. Recorded frames come here once. */
  hears(type, fn) {
    (this.hearers[type] ||= []).push(fn);
  }

  hear(frame) {
    if (frame.seq && frame.type !== "ack" && frame.type !== "ready") {
      if (this.seen.seqs.has(frame.seq) && frame.type !== "status") return;
      this.seen.seqs.add(frame.seq);
      this.seen.last = Math.max(this.seen.last, frame.seq);
    }
    if (!Object.hasOwn(this.hearers, frame.type)) return;
    for (const fn of this.hearers[frame.type]) fn(frame);
  }

  /* Whether a recorded frame was said before this line was there. */
  isOld({ seq }) {
    return seq <= this.seen.until;
  }

  /* What happens in the frame itself: line, language, looks, opened, closed, forgotten, renewed, ended, cite. */
  when(event, fn) {
    (this.listeners[event] ||= []).push(fn);
  }

  happened(event, detail) {
    for (const fn of this.listeners[event] || []) fn(detail);
  }

  /* What the page may ask for, by name (page.js holds it to the one page). */
  ask(name, fn) {
    this.asked[name] = fn;
  }

  /* The visitor's words, from the field or a suggestion (saying.js). */
  say(text) {
    this.happened("say", text);
  }

  notice(text, duration = 8000) {
    part("notice").replaceChildren(text);
    part("notice").hidden = false;
    clearTimeout(this.noticed);
    this.noticed = setTimeout(() => { part("notice").hidden = true; }, duration);
  }
}
