/* What was said, by e-mail: to the address the visitor types. How far the letter is, is told here. */

import { el } from "./dom.js";
import { asked, newId, whenOffered } from "./offers.js";
import { say } from "./words_beside.js";

const LOOK_EVERY = 2000;
const LOOKS = 30;
const PROBLEMS = { invalid_email: "wrong_email", rate_limited: "often", nothing_said: "nothing" };

export function wireTranscript(chat) {
  let letter = newId();

  /* Pressed again after a failure it is the same letter, and sent once. */
  async function send(event, input, button, state) {
    event.preventDefault();
    button.disabled = true;
    state.textContent = say("sending");
    try {
      const json = { address: input.value.trim(), client_id: letter };
      const { id } = await asked(chat, "transcripts", { method: "POST", json });
      letter = newId();
      state.textContent = say(await outcome(id));
    } catch (refusal) {
      state.textContent = say(PROBLEMS[refusal.code] || "failed");
    }
    button.disabled = false;
  }

  async function outcome(id) {
    for (let look = 0; look < LOOKS; look += 1) {
      const { state } = await asked(chat, `transcripts/${id}`);
      if (state !== "owed") return state;
      await new Promise((done) => { setTimeout(done, LOOK_EVERY); });
    }
    return "owed";
  }

  function section() {
    const input = el("input", { type: "email", id: "letter-to", autocomplete: "email", maxlength: 254 });
    const button = el("button", { class: "choice" }, say("send"));
    const state = el("p", { class: "quiet", role: "status" });
    const form = el("form", { class: "field", novalidate: true, onsubmit: (event) => send(event, input, button, state) },
      el("label", { for: input.id }, say("address")), el("div", { class: "pressed" }, input, button), state);
    return el("section", {}, el("h3", {}, say("transcript")), form);
  }

  whenOffered(chat, ({ transcripts }) => chat.sheet.put("transcript", transcripts && section));
}
