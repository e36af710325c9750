/* Assistance beside the composer. A request goes to the server while the page stays usable; Escape cancels it, and its result
   is shown again when its member comes back to the conversation. A suggestion is inserted as a draft and never sent. */

const results = new Map();
let running = null;

export function watchCopilot() {
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  document.addEventListener("toggle", (event) => event.target.id === "copilot-more" && event.target.open && loadMenu(), true);
  document.addEventListener("input", (event) => event.target.id === "reply-text" && !event.target.value && mark(false));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.target.matches("[data-composer=reply]")) mark(false);
  });
  document.addEventListener("htmx:afterSettle", dress);
  dress();
}

function onClick(event) {
  const button = event.target.closest?.("#copilot button");
  if (!button) return;
  if (button.dataset.assist) ask(button.dataset.assist, button.dataset.form ?? "");
  else if (button.matches("[data-assist-cancel]")) cancel();
  else if (button.matches("[data-assist-dismiss]")) dismiss();
  else if (button.dataset.assistInsert) insert(button.dataset.text, button.dataset.assistInsert === "all");
}

function onKey(event) {
  if (event.key !== "Escape" || !box() || document.querySelector("dialog[open], .pick[open], #canned:not([hidden])")) return;
  if (running?.session === session()) cancel();
  else if (area().firstElementChild && box().parentElement.contains(event.target)) dismiss();
  else return;
  event.preventDefault();
}

/* Send one request. Only one runs at a time: a new one takes the place of the one before. */
async function ask(kind, form) {
  if (running) cancel();
  document.querySelector("#copilot-more").open = false;
  const here = session();
  const request = { session: here, url: box().dataset.url, id: crypto.randomUUID?.() ?? randomId(), stop: new AbortController() };
  running = request;
  expect(here, true);
  results.delete(here);
  dress();
  const body = new URLSearchParams({ kind, form, id: request.id, text: draft()?.value ?? "" });
  const html = await send(request.url, { method: "POST", body, signal: request.stop.signal });
  if (running === request) running = null;
  if (html === null) return;
  results.set(here, html);
  expect(here, false);
  dress();
}

function cancel() {
  const request = running;
  running = null;
  request.stop.abort();
  fetch(`${request.url}${request.id}/cancel/`, { method: "POST", headers: headers() }).catch(() => {});
  expect(request.session, false);
  results.set(request.session, document.querySelector("#copilot-cancelled")?.innerHTML ?? "");
  dress();
}

function dismiss() {
  results.delete(session());
  dress();
  draft()?.focus();
}

/* Put the text into the reply, to be read and edited there. */
function insert(words, all) {
  const into = draft();
  if (!into) return;
  document.querySelector("#sheet-reply")?.click();
  into.focus();
  if (all) into.select();
  into.setRangeText(words, into.selectionStart, into.selectionEnd, "end");
  into.dispatchEvent(new Event("input", { bubbles: true }));
  results.delete(session());
  mark(true);
  dress();
}

/* After every swap: show what belongs to the conversation that is open. */
function dress() {
  if (!box()) return;
  box().hidden = false;
  const busy = running?.session === session();
  document.querySelector("#copilot-busy").hidden = !busy;
  for (const button of box().querySelectorAll("[data-assist]")) button.disabled = busy;
  const html = results.get(session()) ?? "";
  if (area().dataset.shown !== html) {
    area().innerHTML = html;
    area().dataset.shown = html;
  }
  for (const button of area().querySelectorAll("[data-assist-insert]")) button.hidden = !draft();
  for (const button of area().querySelectorAll("[data-copy]")) button.hidden = false;
  document.querySelector("#copilot-mark").hidden = !(draft()?.value && store.get(`silas:suggested:${session()}`));
  if (!busy && !html && store.get(`silas:assistance:${session()}`)) fetchLate(session(), box().dataset.url);
}

/* The page was left while a request ran: its result may be there by now. */
async function fetchLate(where, url) {
  expect(where, false);
  const html = await send(`${url}?result`, {});
  if (!html?.trim()) return;
  results.set(where, html);
  dress();
}

async function loadMenu() {
  const menu = document.querySelector("#copilot-menu");
  if (menu.dataset.loaded) return;
  const html = await send(box().dataset.url, {});
  if (html === null || !menu.isConnected) return;
  menu.innerHTML = html;
  menu.dataset.loaded = "yes";
  if (document.querySelector("#copilot-more").contains(document.activeElement)) menu.querySelector("button")?.focus();
}

/* The answer's HTML, which the server has escaped; null where the request was cancelled. */
async function send(url, options) {
  try {
    const answer = await fetch(url, { ...options, headers: headers() });
    const html = await answer.text();
    if (answer.ok || html.includes("data-refusal")) return html;
    return document.querySelector("#broken").innerHTML;
  } catch (error) {
    return error.name === "AbortError" ? null : document.querySelector("#lost").innerHTML;
  }
}

function headers() {
  return { "X-CSRFToken": JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"] };
}

function expect(where, on) {
  if (on) store.set(`silas:assistance:${where}`, "1");
  else store.remove(`silas:assistance:${where}`);
}

function mark(on) {
  if (on) store.set(`silas:suggested:${session()}`, "1");
  else store.remove(`silas:suggested:${session()}`);
  document.querySelector("#copilot-mark")?.toggleAttribute("hidden", !on);
}

function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/* A browser that keeps nothing shows no late result. */
const store = {
  get(key) { try { return sessionStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { sessionStorage.setItem(key, value); } catch { /* kept nowhere */ } },
  remove(key) { try { sessionStorage.removeItem(key); } catch { /* kept nowhere */ } },
};

const box = () => document.querySelector("#copilot");
const area = () => document.querySelector("#copilot-result");
const draft = () => document.querySelector("#reply-text");
const session = () => box()?.dataset.session;
