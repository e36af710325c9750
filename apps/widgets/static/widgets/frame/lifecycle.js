/* Opens, closes, restarts and ends the chat, and takes the visitor's identity and attributes from the host page. */

import { part } from "./chat.js";
import { asJson } from "./session.js";

export function wireLifecycle(chat) {
  const { host, log, session, socket, storage } = chat;

  /* An inline chat does not take the focus when it opens. A new visitor on the home screen has no conversation yet. */
  function open({ quietly = false } = {}) {
    chat.opened = true;
    chat.emit("opened", { quietly });
    if (!chat.isAtHome || session.known || session.identity) socket.open();
    log.toEnd();
  }

  function close() {
    chat.opened = false;
    chat.emit("closed");
  }

  function forget() {
    chat.resetSeen();
    log.clear();
    chat.emit("forgotten");
  }

  function renew() {
    socket.close();
    session.forget();
    forget();
    chat.emit("renewed");
    storage.clear({ proactive: storage.get("proactive") });
    if (chat.opened) socket.open();
  }

  function shutdown() {
    socket.close();
    chat.emit("renewed");
    storage.clear();
    host.tell("gone");
  }

  /* The next session says whether the token was accepted. */
  function identify({ jwt }) {
    session.onIdentity = ({ accepted, reason }) => accepted || host.emit("error", { code: reason });
    session.identify(typeof jwt === "string" ? jwt : null);
    if (chat.isAtHome && session.identity) socket.open();
    socket.reset();
  }

  /* Keeps strings, numbers and booleans, as strings within limits; ignores anything else. */
  function describe({ attributes }) {
    if (!(attributes instanceof Object)) return;
    const plain = Object.entries(attributes).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
    if (plain.length) session.describe(Object.fromEntries(plain.slice(0, 20).map(([name, value]) => [name.slice(0, 40), String(value).slice(0, 200)])));
  }

  chat.onFrame("ready", ({ session_id, seq }) => {
    if (chat.seen.session && chat.seen.session !== session_id) forget();
    Object.assign(chat.seen, { session: session_id, until: seq });
  });
  chat.onHost("init", (options) => {
    storage.restore(options.kept);
    chat.emit("init", options);
    part("close").hidden = Boolean(options.inline);
    if (options.opened) open({ quietly: options.inline });
    else if (session.known) socket.open();
  });
  chat.onHost("attributes", describe);
  for (const [name, fn] of Object.entries({ open, close, identify, renew, shutdown })) chat.onHost(name, fn);
  part("close").hidden = host.alone;
  part("close").addEventListener("click", () => host.tell("close"));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) host.tell("close");
  });
  chat.on("alone", () => open());
}

/* Called when every part is wired: loads the appearance, shows the chat, tells the host page. */
export async function start(chat) {
  const { host, session, socket } = chat;
  chat.onFrame("ready", ({ session_id }) => host.emit("ready", { session_id }));
  chat.emit("locale");
  try {
    const address = `/widget/v1/${encodeURIComponent(chat.key)}/appearance/`;
    const [looks] = await Promise.all([fetch(address, { credentials: "omit" }).then(asJson), chat.spoken]);
    chat.emit("appearance", looks);
    await chat.spoken;
  } catch (refusal) {
    host.emit("error", { code: refusal.code || "unavailable" });
    return;
  }
  part("shell").hidden = false;
  host.tell("hello");
  chat.emit("begun");
  if (session.known) socket.open();
  if (host.alone) chat.emit("alone");
}
