/* What has the visitor not read yet? Counted while the chat is closed or out of sight, told to the page, kept over a reload. */

import { counted, number } from "./words.js";

export function wireReading(chat) {
  const { line, memory, page } = chat;
  let unread = 0;

  const isLooking = () => chat.opened && !document.hidden;

  function count(many) {
    unread = many;
    page.tell("unread", { count: unread, shown: unread > 9 ? `${number(9)}+` : number(unread), text: counted("unread", unread) });
  }

  function read() {
    if (unread) count(0);
    const { last } = chat.seen;
    if (last > (memory.get("read") || 0) && line.send({ type: "read", seq: last })) memory.set("read", last);
  }

  chat.when("said", ({ seq }) => {
    if (isLooking()) read();
    else if (seq > (memory.get("read") || 0)) count(unread + 1);
  });
  chat.when("opened", read);
  chat.when("forgotten", () => count(0));
  document.addEventListener("visibilitychange", () => isLooking() && read());
}
