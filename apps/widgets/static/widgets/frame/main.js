/* The widget's frame, put together: what each frame of the socket and each word of the page means, in one table each. */

import { Composer } from "./composer.js";
import { el } from "./dom.js";
import { Line } from "./line.js";
import { Log } from "./log.js";
import { Memory } from "./memory.js";
import { Outbox } from "./outbox.js";
import { Page } from "./page.js";
import { Passage } from "./passage.js";
import { Presence, capital } from "./presence.js";
import { Session, asJson } from "./session.js";
import { Theme } from "./theme.js";
import { dateLocale, speak, word } from "./words.js";
import { Works } from "./works.js";

const PATIENCE = 60000;
const TYPING_LASTS = 6000;
const key = decodeURIComponent(location.pathname.split("/")[3]);
const $ = (name) => document.querySelector(`[data-${name}]`);

// The console's preview: a test, remembered apart from what this browser says as a visitor.
const ticket = new URLSearchParams(location.search).get("test") || "";
const memory = new Memory(ticket ? `${key} test` : key);
const session = new Session(key, memory, ticket);
const line = new Line(session, { after: (id) => (!seen.session || seen.session === id ? seen.last : 0), onFrame: hear, onState: lineState });
const outbox = new Outbox(memory, line);
const log = new Log($("log"), { onCite: (citation, opener) => passage.open(citation, opener), onSay: say });
const works = new Works(log);
const passage = new Passage(key, session);
const presence = new Presence(() => log.quiet(word("expired")));
const composer = new Composer($("composer"), { onSay: say, onTyping: () => line.send({ type: "typing" }), onTooLong: () => notice(word("tooLong")) });
const bubbles = new Map();
const seen = { seqs: new Set(), last: 0, theirs: 0 };
let looks = { title: "", greeting: "", suggestions: [] };
let opened = false;
let unread = 0;
let catchingUp = 0;

const page = new Page({
  init({ font, locale, theme, opened: already }) {
    useLocale(locale || navigator.language);
    theming.fromPage({ ...(font ? { font } : {}), ...(theme instanceof Object ? theme : {}) });
    if (already) open();
  },
  open,
  close: () => { opened = false; },
  theme: ({ theme }) => theming.fromPage(theme),
  preview: ({ looks: wanted }) => page.origin === location.origin && wanted instanceof Object && wear(wanted),
  locale: ({ locale }) => useLocale(locale),
  identify: ({ jwt }) => identify(jwt),
  renew,
  shutdown,
});

const theming = new Theme((look) => {
  if (looks.title) page.tell("look", { ...look, labels: { title: word("chat", looks), open: word("open") } });
});

/* What each frame means. `recorded` frames carry a seq and arrive here once. */
const FRAMES = {
  ready({ session_id, seq, access_level: level, expires_at, owner, name, deployment }) {
    catchingUp = seq;
    if (seen.session && seen.session !== session_id) forgetLog();
    seen.session = session_id;
    presence.owned({ owner, name });
    nameField();
    presence.access({ level, expires_at });
    if (deployment) wear(deployment);
    log.endLive();
    outbox.sendAll();
    page.emit("ready", { session_id });
  },
  ack({ client_id, seq }) {
    const row = bubbles.get(client_id);
    seen.seqs.add(seq);
    settle(client_id);
    if (row) log.place(row, { seq });
    expectAnswer(seq);
  },
  message(frame) {
    if (frame.sender === "visitor") mine(frame);
    else if (frame.sender === "system") log.quiet(frame.text, frame);
    else theirs(frame);
  },
  delta(frame) {
    if (presence.owner === "bot") log.delta(frame);
  },
  status(frame) {
    if (frame.work_item_id) works.show(frame);
    else if (frame.seq) log.quiet(frame.text, frame);
    else log.announce(frame.text);
  },
  access: (frame) => presence.access(frame),
  owner(frame) {
    const name = frame.name || presence.name;
    const changed = presence.owned({ owner: frame.owner, name });
    if (!changed && !frame.seq) return;
    log.endLive();
    log.typing(false);
    const text = presence.owner === "human" ? word("joined", { name: capital(presence.name) }) : word("left", looks);
    log.quiet(text, frame);
    nameField();
    if (frame.seq <= catchingUp) return;
    log.announce(text);
    page.emit("handoff", { owner: presence.owner });
  },
  typing() {
    log.typing(true, presence.name || looks.title);
    clearTimeout(theirs.patience);
    theirs.patience = setTimeout(() => log.typing(false), TYPING_LASTS);
  },
  error: complain,
};

function hear(frame) {
  if (frame.seq && frame.type !== "ack" && frame.type !== "ready") {
    if (seen.seqs.has(frame.seq) && frame.type !== "status") return;
    seen.seqs.add(frame.seq);
    seen.last = Math.max(seen.last, frame.seq);
  }
  if (Object.hasOwn(FRAMES, frame.type)) FRAMES[frame.type](frame);
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

function say(text) {
  line.open();
  show(outbox.add(text));
}

function show(item) {
  const row = log.visitor(item.text, { pending: true, timestamp: new Date().toISOString() });
  bubbles.set(item.client_id, row);
  setTimeout(() => bubbles.has(item.client_id) && log.mark(row, true), 3000);
}

/* A visitor message from the record: our own optimistic bubble, or one said in another window. */
function mine(frame) {
  const own = frame.client_id ?? outbox.items.find(({ text }) => text === frame.text)?.client_id;
  const row = bubbles.get(own);
  if (!row) {
    log.visitor(frame.text, frame);
    return;
  }
  settle(own);
  log.place(row, frame);
}

function settle(client_id) {
  const row = bubbles.get(client_id);
  if (row) log.mark(row, false);
  bubbles.delete(client_id);
  outbox.settle(client_id);
}

/* --- hearing ------------------------------------------------------------------------------------------------------ */

function theirs(frame) {
  log.endLive();
  log.typing(false);
  clearTimeout(theirs.patience);
  const name = frame.name || (frame.sender === "human" ? capital(presence.name) : "");
  log.said({ ...frame, name });
  seen.theirs = Math.max(seen.theirs, frame.seq);
  if (opened && !document.hidden) read();
  else if (frame.seq > (memory.get("read") || 0)) count(unread + 1);
  if (frame.seq <= catchingUp) return;
  log.announce(word("said", { name: name || looks.title, text: frame.text }));
  page.emit("message", { seq: frame.seq, sender: frame.sender });
}

function expectAnswer(seq) {
  if (presence.owner !== "bot" || seen.theirs > seq) return;
  log.typing(true, looks.title);
  clearTimeout(theirs.patience);
  theirs.patience = setTimeout(() => log.typing(false), PATIENCE);
}

/* A refused message is not sent again; a late acknowledgement would still find its bubble. */
function complain({ code, message, retry_after: wait, client_id: refused = outbox.items[0]?.client_id }) {
  if (code === "too_many_windows") {
    notice(word("windows"), 20000);
    return;
  }
  if (wait) {
    const seconds = Math.max(1, Math.ceil(wait));
    notice(word("busy", { seconds }), seconds * 1000);
    outbox.sendAfter(seconds);
    return;
  }
  log.typing(false);
  outbox.settle(refused);
  notice(word("failed", { message }), 12000);
  page.emit("error", { code });
}

function notice(text, duration = 8000) {
  $("notice").replaceChildren(text);
  $("notice").hidden = false;
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => { $("notice").hidden = true; }, duration);
}

function count(number) {
  unread = number;
  page.tell("unread", { count: unread });
}

function read() {
  if (unread) count(0);
  if (seen.last > (memory.get("read") || 0) && line.send({ type: "read", seq: seen.last })) memory.set("read", seen.last);
}

/* --- the line's state, and what stands above the composer ----------------------------------------------------------- */

function lineState(state, detail) {
  const text = { offline: word("offline"), replaced: word("replaced"), refused: word("refused") }[state];
  const again = state === "replaced" ? el("button", { type: "button", class: "chip", onclick: () => line.open() }, word("resume")) : null;
  $("state").replaceChildren(...[text, again].filter(Boolean));
  $("state").hidden = !text;
  $("subtitle").textContent = word(state === "connecting" ? "connecting" : "subtitle");
  if (state !== "ready") log.typing(false);
  if (state === "refused") page.emit("error", { code: detail?.code || "refused" });
}

function nameField() {
  const label = presence.owner === "human" ? word("writeTo", { name: presence.name }) : word("write");
  composer.field.placeholder = label;
  composer.field.setAttribute("aria-label", label);
}

/* --- looks, language, identity ---------------------------------------------------------------------------------------- */

function wear({ title, theme, greeting, suggestions }) {
  looks = { title: title || looks.title, greeting: greeting ?? looks.greeting, suggestions: suggestions ?? looks.suggestions };
  $("title").textContent = looks.title;
  $("face").textContent = looks.title.charAt(0);
  document.title = word("chat", looks);
  theming.fromDeployment(theme);
  greet();
}

function greet() {
  $("greeting").replaceChildren(looks.greeting);
  $("greeting").hidden = !looks.greeting;
  if (!log.rows.children.length) log.suggest(looks.suggestions);
}

function useLocale(locale) {
  speak(locale);
  session.locale = dateLocale();
  $("log").setAttribute("aria-label", word("conversation"));
  $("subtitle").textContent = word("subtitle");
  $("close").setAttribute("aria-label", word("close"));
  $("latest").setAttribute("aria-label", word("latest"));
  composer.button.setAttribute("aria-label", word("send"));
  nameField();
  theming.paint();
}

/* The page says who its visitor is: the next session answers whether that was believed. */
function identify(jwt) {
  session.onIdentity = ({ accepted, reason }) => accepted || page.emit("error", { code: reason });
  session.identify(typeof jwt === "string" ? jwt : null);
  line.reset();
}

/* --- beginning and ending --------------------------------------------------------------------------------------------- */

function open() {
  opened = true;
  line.open();
  read();
  log.toEnd();
  composer.focus();
}

function forgetLog() {
  Object.assign(seen, { seqs: new Set(), last: 0, theirs: 0, session: null });
  bubbles.clear();
  works.clear();
  log.clear();
  presence.clear();
  count(0);
}

function renew() {
  line.close();
  outbox.clear();
  memory.clear();
  session.forget();
  forgetLog();
  greet();
  if (opened) line.open();
}

function shutdown() {
  line.close();
  outbox.clear();
  memory.clear();
  page.tell("gone");
}

async function begin() {
  useLocale(navigator.language);
  try {
    wear(await asJson(await fetch(`/widget/v1/${encodeURIComponent(key)}/appearance/`, { credentials: "omit" })));
  } catch (refusal) {
    page.emit("error", { code: refusal.code || "unavailable" });
    return;
  }
  $("shell").hidden = false;
  page.tell("hello");
  outbox.items.forEach(show);
  if (session.known) line.open();
  if (page.alone) open();
}

$("close").hidden = page.alone;
$("close").addEventListener("click", () => page.tell("close"));
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) page.tell("close");
});
document.addEventListener("visibilitychange", () => opened && !document.hidden && read());
begin();
