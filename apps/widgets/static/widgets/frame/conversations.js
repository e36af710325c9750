/* Lists this browser's earlier conversations, behind More and on the home screen, which it wires. Each is opened with its own resume token,
   which only this browser has. */

import { wireHome } from "./home.js";
import { clock, el } from "./dom.js";
import { counted, dateLocale, number, panelText, t } from "./i18n.js";
import { onOffers, requestJson } from "./offers.js";
import { sheetOf } from "./sheet.js";

const MOST = 30;

export function wireConversations(chat) {
  const { session, storage } = chat;
  let isOffered = false;

  const known = () => storage.get("conversations") || [];

  function keep(token) {
    if (isOffered && token) storage.set("conversations", [token, ...known().filter((other) => other !== token)].slice(0, MOST));
  }

  /* `renew` clears the storage, so the other conversations and the consent are put back afterwards. The next session is
     requested only after this has returned. */
  function switchTo(token) {
    const kept = { conversations: known(), consent: storage.get("consent") };
    sheetOf(chat).close();
    chat.hostHandlers.renew();
    for (const [field, value] of Object.entries(kept)) if (value) storage.set(field, value);
    if (token) storage.set("resume", token);
  }

  function section() {
    const list = el("ul", { class: "talks" }, el("li", { class: "quiet" }, panelText("loading")));
    fill(list);
    return el("section", {}, el("h3", {}, panelText("conversations")),
      el("button", { type: "button", class: "choice", onclick: () => switchTo("") }, panelText("fresh")), list);
  }

  /* The conversations, last active first, each with its token and whether it is the one that is open. */
  async function load() {
    const now = await session.current();
    const tokens = known();
    const found = await requestJson(chat, "conversations", { method: "POST", json: { resume_tokens: tokens } });
    return found.map((conversation) => ({ ...conversation, token: tokens[conversation.place], isHere: conversation.session_id === now.id }));
  }

  async function fill(list) {
    try {
      const conversations = await load();
      list.replaceChildren(...conversations.map((conversation) => el("li", {}, entry(conversation))));
      if (!conversations.length) list.replaceChildren(el("li", { class: "quiet" }, panelText("none")));
    } catch {
      list.replaceChildren(el("li", { class: "quiet" }, panelText("failed")));
    }
  }

  /* `stay` is what pressing the open conversation does; without it, it is no button. */
  function entry({ preview, last_active_at: at, token, isHere, unread, needs_answer: isAsked, awaits_approval: waits }, stay) {
    const mark = isAsked ? panelText("needsAnswer") : waits ? t("waiting") : "";
    const line = [el("span", { class: "last" }, preview || "…"), mark ? el("span", { class: "mark" }, mark) : null,
      unread ? el("span", { class: "count", "aria-label": counted("unread", unread) }, unread > 9 ? `${number(9)}+` : number(unread)) : null,
      el("time", { datetime: at, class: "quiet" }, clock(Date.parse(at), dateLocale()))].filter(Boolean);
    if (isHere && stay) return el("button", { type: "button", class: "talk", onclick: stay }, ...line);
    if (isHere) return el("div", { class: "talk", "aria-current": "true" }, ...line);
    return el("button", { type: "button", class: "talk", onclick: () => switchTo(token) }, ...line);
  }

  const home = wireHome(chat, { load, entry, begin: () => switchTo("") });
  chat.on("given", ({ resume_token: token }) => keep(token));
  onOffers(chat, (offers) => {
    isOffered = offers.conversations;
    keep(storage.get("resume"));
    sheetOf(chat).put("conversations", isOffered && section);
    home.prepare(offers);
  });
}
