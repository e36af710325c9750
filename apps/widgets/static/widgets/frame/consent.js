/* Asks the visitor for consent before anything is sent or stored, once per version of the text. A visitor who declined can
   still agree. */

import { el } from "./dom.js";
import { link } from "./markdown.js";
import { loadOffers } from "./offers.js";
import { panelText } from "./i18n.js";
import { previewPanel, showPanel } from "./prechat.js";

export function wireConsent(chat) {
  const { host, session, storage } = chat;
  let isRefused = false;

  /* A returning visitor agreed in that conversation; the server refuses if it needs a newer version. */
  session.before = async () => {
    const { consent } = await loadOffers(chat, { reload: isRefused });
    if (!consent) return {};
    if (storage.get("consent") !== consent.version && (isRefused || !session.known)) await agreement(consent);
    isRefused = false;
    return storage.get("consent") === consent.version ? { consent: consent.version } : {};
  };

  session.onRefused = (refusal) => {
    if (refusal.code !== "consent_required") throw refusal;
    isRefused = true;
  };

  function ask(consent, accept, decline, status) {
    const href = link(consent.link);
    const more = href ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, panelText("more")) : null;
    const yes = el("button", { type: "button", class: "choice first", onclick: accept }, panelText("agree"));
    const no = el("button", { type: "button", class: "choice", onclick: decline }, panelText("decline"));
    return showPanel(chat, panelText("consent"), el("p", { class: "words" }, consent.text), more, el("div", { class: "pressed" }, yes, no), status);
  }

  previewPanel(chat, "consent", (consent, done) => ask(consent, done, done));

  function agreement(consent) {
    return new Promise((agreed) => {
      const status = el("p", { class: "quiet", role: "status" });
      const close = ask(consent, accept, decline, status);

      function accept() {
        storage.set("consent", consent.version);
        host.emit("consent", { accepted: true, version: consent.version });
        close();
        agreed();
      }

      function decline() {
        status.textContent = panelText("declined");
        host.emit("consent", { accepted: false, version: consent.version });
      }
    });
  }
}
