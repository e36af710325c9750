/* A panel over the conversation, for consent and the pre-chat form. What is under it is inert until the panel closes. */

import { part } from "./chat.js";
import { el } from "./dom.js";

/* Shows `content`; returns the function that closes it. */
export function showPanel(chat, label, ...content) {
  const panel = el("section", { class: "prelude", "aria-label": label }, ...content);
  const under = [part("log"), part("composer")];
  under.forEach((node) => { node.inert = true; });
  part("composer").before(panel);
  chat.emit("conversation");
  // In the console's preview the focus stays in the form beside it.
  const isMine = !chat.session.ticket;
  const enter = () => isMine && panel.isConnected && panel.querySelector("input, select, textarea, button")?.focus({ preventScroll: true });
  chat.on("opened", ({ quietly } = {}) => quietly || enter());
  if (chat.opened) enter();
  return () => {
    panel.remove();
    if (document.querySelector(".prelude")) return;
    under.forEach((node) => { node.inert = false; });
    if (chat.opened && isMine) part("composer").querySelector("textarea").focus({ preventScroll: true });
  };
}

/* In the console's preview: shows an unsaved panel until it is pressed. `show(value, done)` returns the function that closes
   it; nothing is sent. */
export function previewPanel(chat, offer, show) {
  let before = chat.previewed ? JSON.stringify(chat.previewed[offer]) : null;
  chat.on("previewed", ({ [offer]: value }) => {
    const now = JSON.stringify(value);
    const isOther = before !== null && now !== before;
    before = now;
    if (!isOther) return;
    chat.closePreview?.();
    const done = value?.length === 0 || !value ? null : show(value, () => chat.closePreview());
    chat.closePreview = () => {
      done?.();
      chat.closePreview = null;
    };
  });
}
