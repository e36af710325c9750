/* A few things at once that the visitor is asked to fill in. Sent over HTTP with the conversation's token: what is wrong
   is said at its field, and what was typed stays until it was taken. */

import { Card, ENDS } from "./card.js";
import { el } from "./dom.js";
import { field } from "./field.js";
import { asked } from "./offers.js";
import { word } from "./words.js";

const MOST = 400;

export class FormCard extends Card {
  constructor(frame, chat) {
    super({ title: frame.question, text: frame.rationale, until: frame.expires_at });
    this.chat = chat;
    this.path = `cards/${encodeURIComponent(frame.request_id)}`;
    if (this.state) return;
    this.fields = frame.fields.map((each) => ({ name: each.name, label: each.label, ...field({ ...each, most: each.kind === "text" ? MOST : null, id: `${frame.request_id}-${each.name}` }) }));
    const send = el("button", { class: "choice first" }, word("send"));
    this.actions.append(el("form", { novalidate: true, onsubmit: (event) => this.submit(event) }, ...this.fields.map(({ node }) => node), send));
  }

  async submit(event) {
    event.preventDefault();
    if (this.state || this.face.getAttribute("aria-busy") === "true") return;
    const answers = Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value.trim()]));
    this.busy(true, word("sending"));
    try {
      await asked(this.chat, this.path, { method: "POST", json: { answers } });
      this.settle("filled", this.read());
    } catch (refusal) {
      this.refused(refusal);
    }
  }

  refused({ code, extra }) {
    if (ENDS[code]) {
      this.settle(ENDS[code]);
      return;
    }
    const wrong = extra?.fields || {};
    this.failed(code === "invalid_answers" ? "" : word(code === "card_not_yours" ? "notYours" : "notAnswered"));
    this.fields.forEach(({ name, mark }) => mark(wrong[name]));
    this.fields.find(({ name }) => wrong[name])?.input.focus();
  }

  /* What was typed, as the record has it. */
  read() {
    const filled = this.fields.filter(({ input }) => input.value.trim());
    return filled.map(({ label, input }) => `${label}: ${input.value.trim()}`).join("\n");
  }
}
