/* What changed while somebody looks? One socket that only says what to look at again; the page asks for it through HTMX.
   While the line is down a banner says so, and everything is asked for once it is back. */

const LONGEST_WAIT = 20000;
const SETTLE = 250;

let tries = 0;
let pending = new Set();
let timer;

/* A part of the page that is gone has no use for the answer it was waiting for. */
export function forgetTheGone() {
  document.addEventListener("htmx:beforeCleanupElement", (event) => htmx.trigger(event.target, "htmx:abort"));
}

export function listen() {
  const socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/ws/console/`);
  socket.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  socket.addEventListener("close", (event) => {
    if (event.code === 4001) location.reload();
    else if (event.code !== 4003) again();
  });
}

function hear(frame) {
  if (frame.type === "ready") {
    if (tries > 0 || frame.seq !== Number(document.body.dataset.seen)) tell("everything");
    tries = 0;
    document.body.dataset.line = "open";
    document.querySelector("#offline").hidden = true;
  } else if (frame.type === "changed") tell(frame.what);
}

function again() {
  tries += 1;
  delete document.body.dataset.line;
  if (tries > 1) document.querySelector("#offline").hidden = false;
  setTimeout(listen, Math.min(LONGEST_WAIT, 500 * 2 ** tries) * (0.5 + Math.random() / 2));
}

/* Several changes at once are one look. */
function tell(what) {
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
    if (what !== "cards") found.add("silas:inbox");
    if (what.startsWith("session:")) found.add(`silas:${what}`);
  }
  const open = document.querySelector("[data-log]")?.getAttribute("hx-trigger")?.split(" ")[0];
  if (open && changes.has("everything")) found.add(open);
  return found;
}
