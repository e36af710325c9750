/* Chooses which of the deployment's proactive messages the host page shows above its button, and when.

The host page says which page it is; what was shown is remembered here. A message never opens the chat. Pressed, it is the
first line of the chat, and it is recorded with the visitor's answer (`proactive_message` of the message frame). */

import { dateLocale, t } from "./i18n.js";
import { onOffers } from "./offers.js";

const DAY = 864e5;

/* Whether a pattern with `*` for any characters is all of the text. */
export function fits(pattern, text) {
  const [start, ...parts] = pattern.split("*");
  if (!parts.length) return text === start;
  if (!text.startsWith(start)) return false;
  const end = parts.pop();
  let at = start.length;
  for (const piece of parts) {
    const found = text.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return text.length - at >= end.length && text.endsWith(end);
}

/* A pattern that begins with a slash is about the path alone; a slash at the end makes no difference. */
export function isOnPage(pattern, { host, path }) {
  const plain = (text) => (text.length > 1 && text.endsWith("/") ? text.slice(0, -1) : text);
  return !pattern || fits(plain(pattern), plain(pattern.startsWith("/") ? path : host + path));
}

export function wireProactive(chat) {
  const { host, log, presence, session, storage } = chat;
  const wasHere = session.known;
  let messages = [];
  let page = null;
  let since = 0;
  let due = [];
  let row = null;

  const lastShown = (message) => storage.get("proactive")?.[message.id];

  function isForVisitor({ audience }) {
    return { new: !wasHere, returning: wasHere, identified: Boolean(session.identity) }[audience] ?? true;
  }

  function isDueAgain(message) {
    const last = lastShown(message);
    return !last || (message.repeat_days > 0 && Date.now() - last >= message.repeat_days * DAY);
  }

  function isFor(message) {
    const speaks = !message.language || message.language === dateLocale().split("-")[0];
    return speaks && isOnPage(message.page, page) && isForVisitor(message) && isDueAgain(message);
  }

  /* One message a page: the one with the shortest wait, and of two the older one. */
  function plan() {
    due.forEach(clearTimeout);
    due = [];
    if (!page || chat.opened) return;
    due = messages.map((message) => setTimeout(show, Math.max(0, message.seconds * 1000 - (Date.now() - since)), message));
  }

  function show(message) {
    if (chat.opened || presence.owner !== "bot" || !isFor(message)) return;
    due.forEach(clearTimeout);
    storage.set("proactive", { ...storage.get("proactive"), [message.id]: Date.now() });
    host.tell("proactive", { id: message.id, text: message.text, dismiss: t("dismiss") });
  }

  function open({ id }) {
    const message = messages.find((one) => one.id === id);
    if (!message || row || presence.owner !== "bot") return;
    chat.emit("conversation");
    const isFirst = !log.rows.children.length;
    chat.answers = id;
    row = log.message({ text: message.text, sender: "bot", pending: true, suggestions: isFirst ? chat.appearance.suggestions : [] });
  }

  function clear() {
    row?.remove();
    row = null;
    chat.answers = null;
  }

  function arrive(where) {
    const isOther = page?.host !== where.host || page?.path !== where.path;
    if (!isOther) return;
    page = where;
    since = Date.now();
    plan();
  }

  chat.onHost("page", arrive);
  chat.onHost("answer", open);
  chat.onFrame("message", (frame) => frame.proactive_message && clear());
  chat.on("language", plan);
  chat.on("opened", () => due.forEach(clearTimeout));
  chat.on("forgotten", clear);
  onOffers(chat, ({ proactive_messages: offered = [] }) => {
    messages = [...offered].sort((one, other) => one.seconds - other.seconds);
    plan();
  });
  host.tell("where");
}
