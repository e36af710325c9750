/* A question with options. The last of several options changes nothing and always takes one press; any other takes a
   second press at medium risk, and a slide before it at high risk. */

import { Card } from "./card.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";

const MOST_WORDS = 2000;

export class Decision extends Card {
  constructor(frame, onChosen) {
    super({ title: frame.question, text: frame.rationale, until: frame.expires_at });
    this.frame = frame;
    this.onChosen = onChosen;
    if (!this.state) this.offer();
  }

  offer() {
    const { options, allow_freetext: free } = this.frame;
    const chips = options.map((option, at) => {
      const quiet = at > 0 && at === options.length - 1;
      const kind = at === 0 ? "choice first" : "choice";
      return el("button", { type: "button", class: kind, onclick: () => this.pressed(option, quiet) }, option.label);
    });
    this.actions.replaceChildren(...chips, ...(free ? [this.words()] : []));
  }

  words() {
    const field = el("input", { type: "text", maxlength: MOST_WORDS, "aria-label": t("ownWords"), placeholder: t("ownWords"), autocomplete: "off" });
    const send = () => field.value.trim() && this.choose({ selected_value: "", freetext: field.value.trim() });
    field.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && send());
    return el("div", { class: "own" }, field, el("button", { type: "button", class: "choice", onclick: send }, t("send")));
  }

  pressed(option, quiet) {
    if (quiet || !["medium", "high"].includes(this.frame.risk_level)) this.choose({ selected_value: option.value });
    else this.confirm(option);
  }

  confirm(option) {
    const slides = this.frame.risk_level === "high";
    const go = el("button", { type: "button", class: "choice first", disabled: slides, onclick: () => this.choose({ selected_value: option.value }) }, t("confirm", { answer: option.label }));
    const back = el("button", { type: "button", class: "choice", onclick: () => this.back() }, t("goBack"));
    const slide = slides ? this.slide(option, go) : null;
    this.actions.replaceChildren(...[slide, go, back].filter(Boolean));
    (slide?.querySelector("input") || go).focus();
  }

  slide(option, go) {
    const help = t("slide", { answer: option.label });
    const range = el("input", { type: "range", min: 0, max: 100, step: 1, value: 0, "aria-label": help });
    range.addEventListener("input", () => { go.disabled = Number(range.value) < 100; });
    return el("label", { class: "slide" }, el("span", { "aria-hidden": "true" }, help), range);
  }

  back() {
    this.offer();
    this.actions.querySelector("button").focus();
  }

  /* Shows the options again, including the slide. */
  failed(text) {
    if (!this.state) this.offer();
    super.failed(text);
  }

  choose(chosen) {
    if (this.state) return;
    this.busy(true, t("sending"));
    this.onChosen(chosen);
  }
}
