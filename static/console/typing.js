/* Who is typing in the open conversation: the visitor, or a colleague. A sign of typing is sent at most every three seconds, and
   one that was received is shown for six. */

import { tell } from "./live.js";
import { text } from "./texts.js";

const EVERY = 3000;
const LASTS = 6000;
let sentAt = 0;
let writers = new Map();

export function watchTyping() {
  document.addEventListener("input", (event) => event.target.matches("[data-composer] textarea") && send(event.target));
  document.addEventListener("silas:typing", ({ detail }) => hear(detail));
  document.addEventListener("htmx:afterSwap", (event) => event.target.id === "log" && stop("visitor"));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target.matches("[data-composer]")) sentAt = 0;
  });
}

function send(area) {
  const session = document.querySelector("#writing")?.dataset.session;
  if (!session || !area.value.trim() || Date.now() - sentAt < EVERY) return;
  sentAt = Date.now();
  tell({ type: "typing", session, sheet: area.form.dataset.composer });
}

function hear({ session, sender, name }) {
  const line = document.querySelector("#typing");
  if (line?.dataset.session !== session) return;
  const who = sender === "visitor" ? "visitor" : name;
  clearTimeout(writers.get(who)?.timer);
  const words = sender === "visitor" ? text("is_typing", { name: line.dataset.visitor }) : text("is_writing", { name });
  writers.set(who, { session, words, timer: setTimeout(() => stop(who), LASTS) });
  show();
}

function stop(who) {
  clearTimeout(writers.get(who)?.timer);
  if (writers.delete(who)) show();
}

function show() {
  const line = document.querySelector("#typing");
  if (!line) return;
  const words = [...writers.values()].filter(({ session }) => session === line.dataset.session).map((each) => each.words).join(" · ");
  if (line.textContent !== words) line.textContent = words;
}
