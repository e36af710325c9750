/* The home screen: greeting, a new conversation, and this browser's earlier ones. It is shown once per page, when the visitor
   opens the chat, and not where a message waits for them. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { panelText } from "./i18n.js";

export function wireHome(chat, { load, entry, begin }) {
  const { log, session, storage } = chat;
  const home = el("section", { class: "home", "aria-labelledby": "home-title", hidden: true });
  let conversations = [];
  let isDue = true;
  part("log").before(home);

  /* Loads the list before it is wanted, so that the chat does not change under the visitor's hand. */
  async function prepare() {
    if (isDue && session.known && !session.ticket) conversations = await load().catch(() => []);
  }

  function show() {
    home.replaceChildren(el("h2", { id: "home-title", dir: "auto" }, chat.appearance.greeting || chat.appearance.title),
      el("button", { type: "button", class: "choice", onclick: begin }, panelText("fresh")),
      el("h3", {}, panelText("conversations")),
      el("ul", { class: "talks" }, ...conversations.map((each) => el("li", {}, entry(each, leave)))));
    isHome(true);
    home.querySelector("button").focus();
  }

  function isHome(on) {
    home.hidden = !on;
    part("log").hidden = part("composer").hidden = on;
  }

  function leave() {
    if (home.hidden) return;
    isHome(false);
    log.toEnd();
    part("composer").querySelector("textarea").focus();
  }

  chat.on("init", ({ opened }) => { isDue = isDue && !opened; });
  /* News of the conversation that is open, a message or the outcome of a request, comes before the home screen. */
  function onNews({ seq }) {
    if (!seq || seq <= (storage.get("read") || 0)) return;
    isDue = false;
    leave();
  }

  chat.on("message", onNews);
  chat.onFrame("status", onNews);
  chat.on("opened", ({ quietly }) => {
    if (isDue && !quietly && conversations.length && !document.querySelector(".prelude")) show();
    isDue = false;
  });
  chat.on("renewed", leave);
  return { prepare };
}
