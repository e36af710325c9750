/* What changed while somebody looks? One socket that only says what to look at again; the page asks for it through HTMX.
   While the line is down a banner says so, and everything is asked for once it is back. */

const LONGEST_WAIT = 20000;
const SETTLE = 250;

let line = null;
let tries = 0;
let pending = new Set();
let timer;

/* A part of the page that is gone has no use for the answer it was waiting for: let it come, and drop it. */
export function forgetTheGone() {
  const drop = (event) => event.preventDefault();
  document.addEventListener("htmx:beforeCleanupElement", (event) => event.target.addEventListener("htmx:beforeOnLoad", drop));
}

export function listen() {
  const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/ws/console/`);
  line = socket;
  socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  socket.addEventListener("close", (event) => {
    if (event.code === 4001) location.reload();
    else if (event.code !== 4003) again();
  });
}

/* Say something over the line; while it is down, nobody hears. */
export function tell(frame) {
  if (line?.readyState === WebSocket.OPEN) line.send(JSON.stringify(frame));
}

function hear(frame) {
  if (frame.type === "ready") {
    if (tries > 0 || frame.seq !== Number(document.body.dataset.seen)) look("everything");
    document.dispatchEvent(new Event("silas:ready"));
    tries = 0;
    document.body.dataset.line = "open";
    document.querySelector("#offline").hidden = true;
  } else if (frame.type === "changed") look(frame.what);
}

function again() {
  tries += 1;
  delete document.body.dataset.line;
  if (tries > 1) document.querySelector("#offline").hidden = false;
  setTimeout(listen, Math.min(LONGEST_WAIT, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
}

/* Several changes at once are one look. */
function look(what) {
  pending.add(what);
  clearTimeout(timer);
  timer = setTimeout(() => {
    for (const name of names(pending)) htmx.trigger(document.body, name);
    pending = new Set();
  }, SETTLE);
}

function names(changes) {
  const found = new Set();
  for (const what of changes) {
    if (what === "cards" || what === "everything") found.add("silas:cards");
    if (what.startsWith("task:") || what === "everything") found.add("silas:runs");
    if (what !== "cards" && !/^(card|task|company):/.test(what)) found.add("silas:inbox");
    if (/^(session|card|company):/.test(what)) found.add(`silas:${what}`);
  }
  const open = document.querySelector("[data-log]")?.getAttribute("hx-trigger")?.split(" ")[0];
  if (open && changes.has("everything")) found.add(open);
  return found;
}
