/* How does a chat begin, open, close, start anew and end? And whose is it: the page says who its visitor is. */

import { part } from "./chat.js";
import { asJson } from "./session.js";

export function wireCourse(chat) {
  const { line, log, memory, page, session } = chat;

  /* A chat that stands in the page takes no focus by itself. */
  function open({ quietly = false } = {}) {
    chat.opened = true;
    line.open();
    chat.happened("opened", { quietly });
    log.toEnd();
  }

  function close() {
    chat.opened = false;
    chat.happened("closed");
  }

  function forget() {
    chat.unsee();
    log.clear();
    chat.happened("forgotten");
  }

  function renew() {
    line.close();
    session.forget();
    forget();
    chat.happened("renewed");
    memory.clear();
    if (chat.opened) line.open();
  }

  function shutdown() {
    line.close();
    chat.happened("renewed");
    memory.clear();
    page.tell("gone");
  }

  /* The next session answers whether the page's word was believed. */
  function identify({ jwt }) {
    session.onIdentity = ({ accepted, reason }) => accepted || page.emit("error", { code: reason });
    session.identify(typeof jwt === "string" ? jwt : null);
    line.reset();
  }

  /* Texts and numbers, as texts; whatever else a page may say is no attribute. */
  function describe({ attributes }) {
    if (!(attributes instanceof Object)) return;
    const plain = Object.entries(attributes).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
    if (plain.length) session.describe(Object.fromEntries(plain.slice(0, 20).map(([name, value]) => [name.slice(0, 40), String(value).slice(0, 200)])));
  }

  chat.hears("ready", ({ session_id, seq }) => {
    if (chat.seen.session && chat.seen.session !== session_id) forget();
    Object.assign(chat.seen, { session: session_id, until: seq });
  });
  chat.ask("init", (said) => {
    memory.recall(said.kept);
    chat.happened("init", said);
    part("close").hidden = Boolean(said.inline);
    if (said.opened) open({ quietly: said.inline });
    else if (session.known) line.open();
  });
  chat.ask("attributes", describe);
  for (const [name, fn] of Object.entries({ open, close, identify, renew, shutdown })) chat.ask(name, fn);
  part("close").hidden = page.alone;
  part("close").addEventListener("click", () => page.tell("close"));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) page.tell("close");
  });
  chat.when("alone", () => open());
}

/* Once every part is wired: learn the looks, show the shell, listen to the page. */
export async function begin(chat) {
  const { line, page, session } = chat;
  chat.hears("ready", ({ session_id }) => page.emit("ready", { session_id }));
  chat.happened("locale");
  try {
    const address = `/widget/v1/${encodeURIComponent(chat.key)}/appearance/`;
    chat.happened("looks", await asJson(await fetch(address, { credentials: "omit" })));
  } catch (refusal) {
    page.emit("error", { code: refusal.code || "unavailable" });
    return;
  }
  part("shell").hidden = false;
  page.tell("hello");
  chat.happened("begun");
  if (session.known) line.open();
  if (page.alone) chat.happened("alone");
}
