/* What stands before the first word? A panel over the conversation; what is under it waits. */

import { part } from "./chat.js";
import { el } from "./dom.js";

/* Shows `content` until the returned function is called. */
export function first(chat, label, ...content) {
  const panel = el("section", { class: "prelude", "aria-label": label }, ...content);
  const under = [part("log"), part("composer")];
  under.forEach((node) => { node.inert = true; });
  part("composer").before(panel);
  // In the console's preview the person is in the form beside it, and stays there.
  const isMine = !chat.session.ticket;
  const enter = () => isMine && panel.isConnected && panel.querySelector("input, select, textarea, button")?.focus({ preventScroll: true });
  chat.when("opened", ({ quietly } = {}) => quietly || enter());
  if (chat.opened) enter();
  return () => {
    panel.remove();
    if (document.querySelector(".prelude")) return;
    under.forEach((node) => { node.inert = false; });
    if (chat.opened && isMine) part("composer").querySelector("textarea").focus({ preventScroll: true });
  };
}

/* In the console's preview: how what is typed there would stand here, until it is pressed. `show(value, done)` returns
   what takes it away; nothing of it is sent. */
export function look(chat, offer, show) {
  let before = null;
  chat.when("previewed", ({ [offer]: value }) => {
    const now = JSON.stringify(value);
    const isOther = before !== null && now !== before;
    before = now;
    if (!isOther) return;
    chat.unlook?.();
    const done = value?.length === 0 || !value ? null : show(value, () => chat.unlook());
    chat.unlook = () => {
      done?.();
      chat.unlook = null;
    };
  });
}
