/* Does the visitor agree, before anything is sent or stored? Asked once a version; a no is an answer too, and can be
   thought over. */

import { el } from "./dom.js";
import { first, look } from "./first.js";
import { link } from "./markdown.js";
import { offered } from "./offers.js";
import { say } from "./words_beside.js";

export function wireConsent(chat) {
  const { memory, page, session } = chat;
  let isRefused = false;

  /* Whoever comes back has agreed in that conversation: the server says if it wants more. */
  session.before = async () => {
    const { consent } = await offered(chat, { anew: isRefused });
    if (!consent) return {};
    if (memory.get("consent") !== consent.version && (isRefused || !session.known)) await agreement(consent);
    isRefused = false;
    return memory.get("consent") === consent.version ? { consent: consent.version } : {};
  };

  session.onRefused = (refusal) => {
    if (refusal.code !== "consent_required") throw refusal;
    isRefused = true;
  };

  function ask(consent, accept, decline, said) {
    const href = link(consent.link);
    const more = href ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, say("more")) : null;
    const yes = el("button", { type: "button", class: "choice first", onclick: accept }, say("agree"));
    const no = el("button", { type: "button", class: "choice", onclick: decline }, say("decline"));
    return first(chat, say("consent"), el("p", { class: "words" }, consent.text), more, el("div", { class: "pressed" }, yes, no), said);
  }

  look(chat, "consent", (consent, done) => ask(consent, done, done));

  function agreement(consent) {
    return new Promise((agreed) => {
      const said = el("p", { class: "quiet", role: "status" });
      const close = ask(consent, accept, decline, said);

      function accept() {
        memory.set("consent", consent.version);
        page.emit("consent", { accepted: true, version: consent.version });
        close();
        agreed();
      }

      function decline() {
        said.textContent = say("declined");
        page.emit("consent", { accepted: false, version: consent.version });
      }
    });
  }
}
