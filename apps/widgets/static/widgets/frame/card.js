/* Base class of cards in the conversation: title, explanation, actions and, in the end, one line with the outcome. */

import { clock, el } from "./dom.js";
import { dateLocale, t } from "./i18n.js";

/* Error codes that end a card, with the outcome shown for each. */
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

  /* Shows the deadline if it is near and expires the card on time: the platform takes no answer after it. */
  expireAt(end) {
    const left = end - Date.now();
    if (!(left > 0)) {
      this.settle("expired");
      return;
    }
    if (left < SOONEST) this.outcome.textContent = t("answerBy", { time: clock(end, dateLocale()) });
    this.timer = setTimeout(() => this.settle("expired"), Math.min(left, 2 ** 31 - 1));
  }

  /* A disabled button loses the focus, so the card takes it. */
  busy(on, text = "") {
    if (on && this.actions.contains(document.activeElement)) this.face.focus();
    this.face.setAttribute("aria-busy", on);
    for (const control of this.actions.querySelectorAll("button, input, select")) control.disabled = on;
    if (on) this.say(text);
  }

  say(text) {
    this.outcome.textContent = text;
  }

  /* The answer did not go through and can be retried. */
  failed(text) {
    if (this.state) return;
    this.busy(false);
    this.say(text);
    if (document.activeElement === this.face) this.actions.querySelector("button, input")?.focus();
  }

  /* Ends the card. Only "expired", which this browser's clock may get wrong, can be replaced by a recorded outcome. */
  settle(state, text) {
    if (this.state && (this.state !== "expired" || state === "expired")) return;
    this.state = state;
    this.end();
    const here = this.face.contains(document.activeElement);
    this.actions.replaceChildren();
    this.face.dataset.state = state;
    this.face.removeAttribute("aria-busy");
    this.say(t(`ask_${state}`, { answer: text }));
    if (here) this.face.focus();
  }

  end() {
    clearTimeout(this.timer);
  }
}
