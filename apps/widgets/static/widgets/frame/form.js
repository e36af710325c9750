/* What is asked before the first word? The deployment's form, sent once a conversation. */

import { el } from "./dom.js";
import { field } from "./field.js";
import { first, look } from "./first.js";
import { asked, offered } from "./offers.js";
import { say } from "./words_beside.js";

export function wireForm(chat) {
  let close = null;

  chat.session.onGiven = ((before) => (given) => {
    before(given);
    if (given.form_due && !close) show();
  })(chat.session.onGiven);
  chat.when("forgotten", end);

  function end() {
    close?.();
    close = null;
  }

  async function show({ anew = false } = {}) {
    close ||= () => {};
    const { form: questions } = await offered(chat, { anew }).catch(() => ({ form: [] }));
    if (!close) return;
    if (!questions.length) return end();
    const fields = questions.map(field);
    const problem = el("p", { class: "problem", role: "alert" });
    close = ask(fields, (event, button) => send(event, fields, problem, button), problem);
  }

  function ask(fields, onsubmit, ...below) {
    const button = el("button", { class: "choice first" }, say("begin"));
    const form = el("form", { novalidate: true, onsubmit: (event) => onsubmit(event, button) }, ...fields.map(({ node }) => node), ...below, button);
    return first(chat, say("consent"), form);
  }

  look(chat, "form", (questions, done) => ask(questions.map(field), (event) => {
    event.preventDefault();
    done();
  }));

  async function send(event, fields, problem, button) {
    event.preventDefault();
    const answers = Object.fromEntries(fields.map(({ id, input }) => [id, input.value.trim()]));
    button.disabled = true;
    try {
      await asked(chat, "form", { method: "POST", json: { answers } });
      end();
    } catch (refusal) {
      button.disabled = false;
      if (refusal.code === "form_changed") {
        end();
        show({ anew: true });
        return;
      }
      const wrong = refusal.extra?.fields || {};
      fields.forEach(({ id, mark }) => mark(wrong[id]));
      problem.textContent = Object.keys(wrong).length ? "" : say("failed");
      fields.find(({ id }) => wrong[id])?.input.focus();
    }
  }
}
