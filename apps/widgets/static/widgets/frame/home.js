/* The home screen: greeting, what the chatbot suggests, a search in the articles, the way into the conversation, and this
   browser's earlier ones. It is shown once per page, when the visitor opens the chat, where there are articles or earlier
   conversations, and not where something waits for the visitor in the conversation that is open. A new visitor's
   conversation begins when they leave it. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { panelText } from "./i18n.js";

export function wireHome(chat, { load, entry, begin }) {
  const { log, session, socket, storage } = chat;
  const home = el("section", { class: "home", tabindex: "-1", hidden: true });
  let conversations = [];
  let search = null;
  // A chat that was open before the home screen was loaded has opened on the conversation.
  let isDue = !chat.opened;
  let isAskedFirst = false;
  part("log").before(home);

  /* Loads what it shows before it is wanted, so that the chat does not change under the visitor's hand. */
  async function prepare(offers) {
    if (!isDue || !chat.appearance.hasHome || session.ticket) return;
    isAskedFirst = Boolean(offers.consent || offers.form?.length);
    try {
      search = offers.articles ? (await import("./articles.js")).articleSearch(chat, { home, ask: askAbout }) : null;
      conversations = offers.conversations && session.known ? await load() : [];
    } catch {
      conversations = [];
    }
  }

  function show() {
    const { greeting, suggestions } = chat.appearance;
    const isNew = !conversations.length && !log.rows.children.length;
    home.setAttribute("aria-label", greeting || chat.appearance.title);
    home.replaceChildren(...[greeting && el("h2", { dir: "auto" }, greeting), isNew && log.chips(suggestions), search?.(), entrance(isNew), ...earlier()].filter(Boolean));
    setShown(true);
    home.focus({ preventScroll: true });
  }

  function entrance(isNew) {
    if (conversations.length) return el("button", { type: "button", class: "choice first", onclick: begin }, panelText("fresh"));
    return el("button", { type: "button", class: "choice first", onclick: enter }, panelText(isNew ? "write" : "back"));
  }

  function earlier() {
    if (!conversations.length) return [];
    return [el("h2", { class: "small" }, panelText("conversations")),
      el("ul", { class: "talks" }, ...conversations.map((each) => el("li", {}, entry(each, leave))))];
  }

  function setShown(on) {
    home.hidden = !on;
    part("log").hidden = part("composer").hidden = on;
    chat.isAtHome = on;
  }

  function leave() {
    if (home.hidden) return;
    setShown(false);
    log.toEnd();
    part("composer").querySelector("textarea").focus();
  }

  function enter() {
    if (home.hidden) return;
    leave();
    socket.open();
  }

  /* The beginning of a question, which the visitor completes and sends; in a new conversation where there may be several. */
  function askAbout(title) {
    (conversations.length ? begin : enter)();
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
    // An identity is checked at once, and consent and the form come before that.
    const isTaken = document.querySelector(".prelude") || (isAskedFirst && session.identity && !session.known);
    if (isDue && !quietly && !isTaken && (search || conversations.length) && chat.appearance.hasHome) show();
    isDue = false;
  });
  chat.on("say", enter);
  chat.on("conversation", enter);
  chat.on("renewed", leave);
  return { prepare };
}
