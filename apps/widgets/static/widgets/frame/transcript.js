/* Sends the transcript to an e-mail address; goes on elsewhere: by e-mail, or in a messenger by a link. */

import { el } from "./dom.js";
import { newId, onOffers, requestJson } from "./offers.js";
import { panelText } from "./i18n.js";
import { sheetOf } from "./sheet.js";

const LOOK_EVERY = 2000;
const LOOKS = 30;
const PROBLEMS = { invalid_email: "wrong_email", rate_limited: "often", nothing_said: "nothing" };

export function wireTranscript(chat) {
  let clientId = newId();

  /* A retry after a failure has the same client_id, so the e-mail is sent once. */
  async function send(event, input, button, state) {
    event.preventDefault();
    button.disabled = true;
    state.textContent = panelText("sending");
    try {
      const json = { address: input.value.trim(), client_id: clientId };
      const { id } = await requestJson(chat, "transcripts", { method: "POST", json });
      clientId = newId();
      state.textContent = panelText(await outcome(id));
    } catch (refusal) {
      state.textContent = panelText(PROBLEMS[refusal.code] || "failed");
    }
    button.disabled = false;
  }

  async function outcome(id) {
    for (let look = 0; look < LOOKS; look += 1) {
      const { state } = await requestJson(chat, `transcripts/${id}`);
      if (state !== "owed") return state;
      await new Promise((done) => { setTimeout(done, LOOK_EVERY); });
    }
    return "owed";
  }

  function section() {
    const input = el("input", { type: "email", id: "transcript-to", autocomplete: "email", maxlength: 254 });
    const button = el("button", { class: "choice" }, panelText("send"));
    const state = el("p", { class: "quiet", role: "status" });
    const form = el("form", { class: "field", novalidate: true, onsubmit: (event) => send(event, input, button, state) },
      el("label", { for: input.id }, panelText("address")), el("div", { class: "pressed" }, input, button), state);
    return el("section", {}, el("h3", {}, panelText("transcript")), form);
  }

  onOffers(chat, ({ transcripts }) => sheetOf(chat).put("transcript", transcripts && section));
}

export function wireElsewhere(chat) {
  const ask = (path, json) => requestJson(chat, path, { method: "POST", json });
  const state = el("p", { class: "quiet", role: "status" });

  async function send(event, input) {
    event.preventDefault();
    state.textContent = panelText("sending");
    try {
      await ask("email-answers", { address: input.value.trim() });
      state.textContent = panelText("sent");
    } catch (refusal) {
      state.textContent = panelText(refusal.code === "invalid_email" ? "wrong_email" : "failed");
    }
  }

  async function open(channel) {
    // Opened before the answer arrives, because browsers block windows that open later.
    const opened = window.open("about:blank", "_blank");
    try {
      opened.location = (await ask("continue", { channel })).url;
    } catch {
      opened?.close();
      state.textContent = panelText("failed");
    }
  }

  function section({ email_answers: mails, continue_in: places }) {
    const input = el("input", { type: "email", id: "answers-to", autocomplete: "email" });
    const form = el("form", { class: "field", novalidate: true, onsubmit: (event) => send(event, input) },
      el("label", { for: input.id }, panelText("emailAnswers")), el("div", { class: "pressed" }, input, el("button", { class: "choice" }, panelText("send"))));
    const buttons = places.map(({ channel, name }) => el("button", { type: "button", class: "choice", onclick: () => open(channel) }, panelText("continueIn", { name })));
    state.textContent = "";
    return el("section", {}, ...(mails ? [form] : []), el("div", { class: "pressed" }, ...buttons), state);
  }

  onOffers(chat, (offers) => sheetOf(chat).put("elsewhere", (offers.email_answers || offers.continue_in?.length) && (() => section(offers))));
}
