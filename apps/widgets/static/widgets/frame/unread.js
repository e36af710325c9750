/* Counts unread messages while the chat is closed or hidden, and tells the host page. Survives a reload. */

import { counted, number } from "./i18n.js";

export function wireUnread(chat) {
  const { host, socket, storage } = chat;
  let unread = 0;

  const isLooking = () => chat.opened && !document.hidden;

  function count(many) {
    unread = many;
    host.tell("unread", { count: unread, shown: unread > 9 ? `${number(9)}+` : number(unread), text: counted("unread", unread) });
  }

  function read() {
    if (unread) count(0);
    const { last } = chat.seen;
    if (last > (storage.get("read") || 0) && socket.send({ type: "read", seq: last })) storage.set("read", last);
  }

  chat.on("message", ({ seq }) => {
    if (isLooking()) read();
    else if (seq > (storage.get("read") || 0)) count(unread + 1);
  });
  chat.on("opened", read);
  chat.on("forgotten", () => count(0));
  document.addEventListener("visibilitychange", () => isLooking() && read());
}
