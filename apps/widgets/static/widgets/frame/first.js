/* What stands before the first word? A panel over the conversation; what is under it waits. */

import { part } from "./chat.js";
import { el } from "./dom.js";

/* Shows `content` until the returned function is called. */
export function first(chat, label, ...content) {
  const panel = el("section", { class: "prelude", "aria-label": label }, ...content);
  const under = [part("log"), part("composer")];
  under.forEach((node) => { node.inert = true; });
  part("composer").before(panel);
  const enter = () => panel.isConnected && panel.querySelector("input, select, textarea, button")?.focus({ preventScroll: true });
  chat.when("opened", ({ quietly } = {}) => quietly || enter());
  if (chat.opened) enter();
  return () => {
    panel.remove();
    if (document.querySelector(".prelude")) return;
    under.forEach((node) => { node.inert = false; });
    if (chat.opened) part("composer").querySelector("textarea").focus({ preventScroll: true });
  };
}
