/* A card in the conversation: a title, what explains it, what can be done, and in the end one line about what became of it. */

import { clock, el } from "./dom.js";
import { dateLocale, word } from "./words.js";

/* Refusals that end a card, by what the visitor then reads. */
export const ENDS = { card_expired: "expired", card_withdrawn: "withdrawn", card_decided: "settled", not_found: "withdrawn" };

const SOONEST = 24 * 60 * 60 * 1000;

export class Card {
  constructor({ title, text, until }) {
    this.title = title;
    this.row = el("div", { class: "row" });
    this.outcome = el("p", { class: "quiet outcome", role: "status" });
    this.actions = el("div", { class: "actions" });
    this.face = el("section", { class: "ask", "aria-label": title, tabindex: "-1" }, el("b", {}, title));
    if (text) this.face.append(el("p", { class: "quiet" }, text));
    this.face.append(this.actions, this.outcome);
    this.row.append(this.face);
    this.expireAt(Date.parse(until));
  }

  /* Says when it ends where that is soon, and ends by itself: the platform would no longer take an answer. */
  expireAt(end) {
    const left = end - Date.now();
    if (!(left > 0)) {
      this.settle("expired");
      return;
    }
    if (left < SOONEST) this.outcome.textContent = word("answerBy", { time: clock(end, dateLocale()) });
    this.timer = setTimeout(() => this.settle("expired"), Math.min(left, 2 ** 31 - 1));
  }

  /* What is pressed loses the focus with its being disabled; the card keeps it. */
  busy(on, text = "") {
    if (on && this.actions.contains(document.activeElement)) this.face.focus();
    this.face.setAttribute("aria-busy", on);
    for (const control of this.actions.querySelectorAll("button, input, select")) control.disabled = on;
    if (on) this.say(text);
  }

  say(text) {
    this.outcome.textContent = text;
  }

  /* It did not go through and can be tried again. */
  failed(text) {
    if (this.state) return;
    this.busy(false);
    this.say(text);
    if (document.activeElement === this.face) this.actions.querySelector("button, input")?.focus();
  }

  /* For good; only the record knows better than this browser's clock. The focus stays with the card it was in. */
  settle(state, text) {
    if (this.state && (this.state !== "expired" || state === "expired")) return;
    this.state = state;
    this.end();
    const here = this.face.contains(document.activeElement);
    this.actions.replaceChildren();
    this.face.dataset.state = state;
    this.face.removeAttribute("aria-busy");
    this.say(word(`ask_${state}`, { answer: text }));
    if (here) this.face.focus();
  }

  end() {
    clearTimeout(this.timer);
  }
}
