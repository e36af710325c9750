/* One labelled form field with its error message. */

import { el } from "./dom.js";
import { panelText } from "./i18n.js";

/* Input type, autocomplete and maximum length for each kind. */
const TYPES = { name: ["text", "name", 120], email: ["email", "email", 254], text: ["text", "off", 1000], number: ["number", "off"], date: ["date", "off"] };

export function field({ id, kind, label, required, choices = [], most }) {
  const name = `field-${id}`;
  const note = el("span", { class: "problem", id: `${name}-note` });
  const more = { id: name, "aria-describedby": note.id, "aria-required": required ? "true" : null };
  const [type, autocomplete, maxlength] = TYPES[kind] || [];
  const input = kind === "choice"
    ? el("select", more, el("option", { value: "" }, panelText("choose")), ...choices.map((choice) => el("option", { value: choice }, choice)))
    : el("input", { type, autocomplete, maxlength: most || maxlength, step: kind === "number" ? "any" : null, ...more });
  const node = el("div", { class: "field" }, el("label", { for: name }, required ? label : `${label} (${panelText("optional")})`), input, note);
  function mark(problem) {
    note.textContent = problem ? panelText(`wrong_${problem}`) : "";
    input.setAttribute("aria-invalid", problem ? "true" : "false");
  }
  return { id, node, input, mark };
}
