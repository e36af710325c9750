/* A field for confidential details, posted straight to its own URL. The value is in no message, in no browser storage and in
   no log; a recorded frame says that it was stored. */

import { Card, ENDS } from "./card.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { link } from "./markdown.js";
import { asJson } from "./session.js";

const MOST = 4000;

export class SecretField extends Card {
  constructor({ ref_id, label, input_hint: hint, guidance, expires_at: until }, session) {
    super({ title: label, text: guidance?.instructions, until });
    this.address = `/secrets/${encodeURIComponent(ref_id)}`;
    this.session = session;
    if (this.state) return;
    this.field = el("input", { type: "password", maxlength: MOST, placeholder: hint, "aria-label": label, autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
    this.field.addEventListener("keydown", (event) => event.key === "Enter" && this.store());
    const help = link(guidance?.help_url);
    this.actions.append(
      el("div", { class: "own" }, this.field, el("button", { type: "button", class: "choice first", onclick: () => this.store() }, t("saveSecret"))),
      el("p", { class: "quiet" }, t("secretHelp")),
      ...(help ? [el("a", { href: help, target: "_blank", rel: "noopener noreferrer" }, t("secretGuide"))] : []),
    );
  }

  async store() {
    const { value } = this.field;
    if (!value || this.state) {
      this.field.focus();
      return;
    }
    this.busy(true, t("sending"));
    try {
      await this.post(value);
      this.field.value = "";
      this.settle("stored");
    } catch (refusal) {
      if (ENDS[refusal.code]) this.settle(ENDS[refusal.code]);
      else this.failed(t(refusal.code === "card_not_yours" ? "notYours" : "notStored"));
    }
  }

  /* Renews an expired session token once. */
  async post(value, again = true) {
    const { token } = await this.session.current();
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
    const response = await fetch(this.address, { method: "POST", credentials: "omit", headers, body: JSON.stringify({ value }) });
    if (response.status === 401 && again) {
      this.session.expire();
      await this.post(value, false);
    } else await asJson(response);
  }
}
