/* The home screen: greeting, a search in the articles, a new conversation, and this browser's earlier ones. It is shown once per
   page, when the visitor opens the chat, and not where a message waits for them in the conversation that is open. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { panelText } from "./i18n.js";

export function wireHome(chat, { load, entry, begin }) {
  const { log, session, storage } = chat;
  const home = el("section", { class: "home", hidden: true });
  let conversations = [];
  let search = null;
  let isDue = true;
  part("log").before(home);

  /* Loads what it shows before it is wanted, so that the chat does not change under the visitor's hand. */
  async function prepare({ articles }) {
    if (!isDue || !chat.appearance.hasHome || !session.known || session.ticket) return;
    try {
      search = articles ? (await import("./articles.js")).articleSearch(chat, { home, ask: askAbout }) : null;
      conversations = await load();
    } catch {
      conversations = [];
    }
  }

  function show() {
    const { greeting } = chat.appearance;
    home.setAttribute("aria-label", greeting || panelText("conversations"));
    home.replaceChildren(...[greeting && el("h2", { dir: "auto" }, greeting), search?.(),
      el("button", { type: "button", class: "choice", onclick: begin }, panelText("fresh")),
      el("h2", { class: "small" }, panelText("conversations")),
      el("ul", { class: "talks" }, ...conversations.map((each) => el("li", {}, entry(each, leave))))].filter(Boolean));
    setShown(true);
    home.querySelector("button.choice[type=button]").focus();
  }

  function setShown(on) {
    home.hidden = !on;
    part("log").hidden = part("composer").hidden = on;
  }

  function leave() {
    if (home.hidden) return;
    setShown(false);
    log.toEnd();
    part("composer").querySelector("textarea").focus();
  }

  /* A new conversation with the beginning of a question, which the visitor completes and sends. */
  function askAbout(title) {
    begin();
    chat.emit("draft", panelText("questionAbout", { title }));
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
    if (isDue && !quietly && conversations.length && chat.appearance.hasHome && !document.querySelector(".prelude")) show();
    isDue = false;
  });
  chat.on("renewed", leave);
  return { prepare };
}
