/* The deployment's pre-chat form, sent once per conversation. Loaded when it is due. */

import { el } from "./dom.js";
import { field } from "./field.js";
import { loadOffers, requestJson } from "./offers.js";
import { panelText } from "./i18n.js";
import { previewPanel, showPanel } from "./prechat.js";

/* Returns the function that shows it. */
export function wireForm(chat) {
  let close = null;

  chat.on("forgotten", end);

  function end() {
    close?.();
    close = null;
  }

  async function show({ reload = false } = {}) {
    close ||= () => {};
    const { form: questions } = await loadOffers(chat, { reload }).catch(() => ({ form: [] }));
    if (!close) return;
    if (!questions.length) return end();
    const fields = questions.map(field);
    const problem = el("p", { class: "problem", role: "alert" });
    close = ask(fields, (event, button) => send(event, fields, problem, button), problem);
  }

  function ask(fields, onsubmit, ...below) {
    const button = el("button", { class: "choice first" }, panelText("begin"));
    const form = el("form", { novalidate: true, onsubmit: (event) => onsubmit(event, button) }, ...fields.map(({ node }) => node), ...below, button);
    return showPanel(chat, panelText("consent"), form);
  }

  previewPanel(chat, "form", (questions, done) => ask(questions.map(field), (event) => {
    event.preventDefault();
    done();
  }));

  async function send(event, fields, problem, button) {
    event.preventDefault();
    const answers = Object.fromEntries(fields.map(({ id, input }) => [id, input.value.trim()]));
    button.disabled = true;
    try {
      await requestJson(chat, "form", { method: "POST", json: { answers } });
      end();
    } catch (refusal) {
      button.disabled = false;
      if (refusal.code === "form_changed") {
        end();
        show({ reload: true });
        return;
      }
      const wrong = refusal.extra?.fields || {};
      fields.forEach(({ id, mark }) => mark(wrong[id]));
      problem.textContent = Object.keys(wrong).length ? "" : panelText("failed");
      fields.find(({ id }) => wrong[id])?.input.focus();
    }
  }

  return () => close || show();
}
