/* The socket to the server. It only says what changed; the page loads it through HTMX. While the socket is down the rail is
   polled, and everything is refreshed once the audit log has grown; a banner appears only if polling fails too. */

import { doWaiting } from "./after_paint.js";

const LONGEST_WAIT = 20000;
const SETTLE = 250;
const POLL = 15000;

let line = null;
let tries = 0;
let pending = new Set();
let timer;
let polls;
let seen = 0;

/* Drop responses for elements that were removed from the page while they waited. */
export function forgetTheGone() {
  const drop = (event) => event.preventDefault();
  document.addEventListener("htmx:beforeCleanupElement", (event) => event.target.addEventListener("htmx:beforeOnLoad", drop));
}

export function listen() {
  seen ||= Number(document.body.dataset.seen);
  const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/ws/console/`);
  line = socket;
  socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  socket.addEventListener("close", (event) => {
    if (event.code === 4001) location.reload();
    else if (event.code !== 4003) again();
  });
}

/* Send a frame; while the socket is down it is dropped. */
export function tell(frame) {
  if (line?.readyState === WebSocket.OPEN) line.send(JSON.stringify(frame));
}

function hear(frame) {
  if (frame.type === "ready") {
    if (tries > 0 || frame.seq !== Number(document.body.dataset.seen)) look("everything");
    document.dispatchEvent(new Event("silas:ready"));
    tries = 0;
    polls = clearInterval(polls);
    document.body.dataset.line = "open";
    arrived(true);
  } else if (frame.type === "changed") look(frame.what);
  else if (frame.type === "notice") document.dispatchEvent(new CustomEvent("silas:notice", { detail: frame }));
  else if (frame.type === "typing") document.dispatchEvent(new CustomEvent("silas:typing", { detail: frame }));
}

function again() {
  tries += 1;
  delete document.body.dataset.line;
  if (tries > 1 && !polls) {
    polls = setInterval(poll, POLL);
    poll();
  }
  setTimeout(listen, Math.min(LONGEST_WAIT, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
}

/* Without the socket: read the number of the last audit entry from the responses of the rail. */
export function askWithoutLine() {
  document.addEventListener("visibilitychange", () => polls && poll());
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt.id !== "rail") return;
    const { xhr } = event.detail;
    if (polls) arrived(xhr.status > 0 && xhr.status < 502);
    const now = Number(xhr.getResponseHeader("X-Console-Seen"));
    if (polls && now > seen) look("everything");
    seen = Math.max(seen, now);
  });
}

function poll() {
  if (!document.hidden) htmx.trigger("#rail", "silas:poll");
}

function arrived(did) {
  document.querySelector("#offline").hidden = did;
}

/* Several changes at once become one refresh. */
function look(what) {
  pending.add(what);
  clearTimeout(timer);
  timer = setTimeout(() => {
    // What was put off until the paint would not hear of it.
    doWaiting();
    for (const name of names(pending)) htmx.trigger(document.body, name);
    pending = new Set();
  }, SETTLE);
}

function names(changes) {
  const found = new Set();
  for (const what of changes) {
    if (what === "cards" || what === "everything") found.add("silas:cards");
    if (what.startsWith("task:") || what === "everything") found.add("silas:runs");
    if (what === "safety" || what === "everything") found.add("silas:safety");
    if (what !== "cards" && what !== "safety" && !/^(card|task|company):/.test(what)) found.add("silas:inbox");
    if (/^(session|card|company):/.test(what)) found.add(`silas:${what}`);
  }
  const open = document.querySelector("[data-log]")?.getAttribute("hx-trigger")?.split(" ")[0];
  if (open && changes.has("everything")) found.add(open);
  return found;
}
