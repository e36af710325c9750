/* The panel that asks the visitor for consent. A visitor who declined can still agree. */

import { el } from "./dom.js";
import { link } from "./markdown.js";
import { panelText } from "./i18n.js";
import { previewPanel, showPanel } from "./prechat.js";

function ask(chat, consent, accept, decline, status) {
  const href = link(consent.link);
  const more = href ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, panelText("more")) : null;
  const yes = el("button", { type: "button", class: "choice first", onclick: accept }, panelText("agree"));
  const no = el("button", { type: "button", class: "choice", onclick: decline }, panelText("decline"));
  return showPanel(chat, panelText("consent"), el("p", { class: "words" }, consent.text), more, el("div", { class: "pressed" }, yes, no), status);
}

export function wireAgreement(chat) {
  previewPanel(chat, "consent", (consent, done) => ask(chat, consent, done, done));
}

/* Resolves when the visitor agreed. */
export function agreement(chat, consent) {
  const { host, storage } = chat;
  return new Promise((agreed) => {
    const status = el("p", { class: "quiet", role: "status" });
    const close = ask(chat, consent, accept, decline, status);

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
