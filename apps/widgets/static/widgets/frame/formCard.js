/* A form for the visitor in the conversation. Sent over HTTP with the conversation's token: errors are shown at their
   fields, and the input stays until it is accepted. */

import { Card, ENDS } from "./card.js";
import { el } from "./dom.js";
import { field } from "./field.js";
import { t } from "./i18n.js";
import { requestJson } from "./offers.js";

const MOST = 400;

export class FormCard extends Card {
  constructor(frame, chat) {
    super({ title: frame.question, text: frame.rationale, until: frame.expires_at });
    this.chat = chat;
    this.path = `cards/${encodeURIComponent(frame.request_id)}`;
    if (this.state) return;
    this.fields = frame.fields.map((spec) => ({ name: spec.name, label: spec.label, ...field({ ...spec, most: spec.kind === "text" ? MOST : null, id: `${frame.request_id}-${spec.name}` }) }));
    const send = el("button", { class: "choice first" }, t("send"));
    this.actions.append(el("form", { novalidate: true, onsubmit: (event) => this.submit(event) }, ...this.fields.map(({ node }) => node), send));
  }

  async submit(event) {
    event.preventDefault();
    if (this.state || this.face.getAttribute("aria-busy") === "true") return;
    const answers = Object.fromEntries(this.fields.map(({ name, input }) => [name, input.value.trim()]));
    this.busy(true, t("sending"));
    try {
      await requestJson(this.chat, this.path, { method: "POST", json: { answers } });
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
    this.failed(code === "invalid_answers" ? "" : t(code === "card_not_yours" ? "notYours" : "notAnswered"));
    this.fields.forEach(({ name, mark }) => mark(wrong[name]));
    this.fields.find(({ name }) => wrong[name])?.input.focus();
  }

  /* The answers, formatted as in the recorded frame. */
  read() {
    const filled = this.fields.filter(({ input }) => input.value.trim());
    return filled.map(({ label, input }) => `${label}: ${input.value.trim()}`).join("\n");
  }
}
