/* Review: moves through the queue without waiting. The cards next in line are fetched before they are asked for; J, K and a
   press on a row show them at once, and so does a decision, which is sent behind the next card. An answer carries the id and
   the hash of the card that was in view, so what is sent late still decides that card or nothing. Keys pressed while a card
   loads are kept and then pressed in order, each on the card that it was meant for; if the queue changed meanwhile, they are
   shown as not used. */

import { afterPaint } from "./after_paint.js";
import { replayKey } from "./replay.js";
import { text } from "./texts.js";

const AHEAD = 6;
const SETTLE = 350;
const TOLD = 8000;
const RENEW = 2000;
const UNDO = 10000;
/* Keys that act on no card, and keys that do no harm where they do nothing. */
const ANYWHERE = new Set(["escape", "?", "1", "2", "3", "4"]);
const HARMLESS = new Set(["escape", " ", "arrowup", "arrowdown", "arrowleft", "arrowright"]);
const KEPT = new Set([...HARMLESS, "enter", "end", "tab"]);
const STEPS = { j: 1, k: -1 };

const parts = new Map();
const asked = new Map();
const sent = new Map();
const answered = new Set();
const confirming = new WeakMap();
let loading = null;
const busy = new Set();
/* The keys that wait, each with the queue as it was when it was pressed, and the card that the first of them is meant for. */
let held = [];
let due = null;
let isReplaying = false;
let chain = Promise.resolve();
let later;
let renewal;

export function watchReview() {
  document.addEventListener("click", onRow, true);
  document.addEventListener("click", onStepBack);
  document.addEventListener("submit", onAnswer, true);
  document.addEventListener("htmx:beforeRequest", (event) => isForMain(event) && busy.add(event.detail.xhr));
  document.addEventListener("htmx:afterRequest", (event) => busy.delete(event.detail.xhr) && setTimeout(release));
  document.addEventListener("htmx:afterSettle", () => {
    hideSent();
    prefetch();
  });
  document.body.addEventListener("silas:cards", () => {
    clearTimeout(renewal);
    renewal = setTimeout(renew, RENEW);
  });
  document.addEventListener("click", onUndo);
  addEventListener("beforeunload", (event) => [...sent.values()].some((order) => !order.held) && event.preventDefault());
  addEventListener("pagehide", sendHeld);
  addEventListener("pageshow", (event) => event.persisted && sent.size && location.reload());
  setInterval(countDown, 1000);
  prefetch();
}

/* Take a key of the review page. True if it was used or kept. */
export function takeKey(key, isRepeated = false) {
  if (!stack()) return false;
  const step = STEPS[key] ?? 0;
  if (loading || busy.size || (held.length && !isReplaying)) {
    if (key.length > 1 && !KEPT.has(key)) return false;
    if (isRepeated && !step) return true;
    // While the last answer is on its way nobody knows which card comes next.
    if (!held.length) due = loading && sent.has(loading) ? null : loading ?? inView();
    held.push({ key, queue: rows().map((row) => row.dataset.row) });
    return true;
  }
  const slide = document.activeElement;
  if (key === "end" && slide.matches("[data-slide]")) {
    slide.value = slide.max;
    slide.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  }
  if (step) move(step);
  return Boolean(step);
}

/* Press the kept keys in order, until one leads to a card that loads, or until a key would act on another card than its own. */
function release() {
  isReplaying = true;
  while (held.length && !loading && !busy.size) {
    const { key } = held[0];
    const isMisplaced = !ANYWHERE.has(key) && inView() !== due;
    if (isMisplaced || (!replayKey({ key }) && !HARMLESS.has(key))) {
      refuseKeys();
      break;
    }
    held.shift();
    const at = loading ?? inView();
    if (at === due || !held.length) continue;
    if (at !== following(held[0].queue, due, key)) {
      refuseKeys();
      break;
    }
    due = at;
  }
  isReplaying = false;
}

/* The card to which the key led in the queue as it was when the next key was pressed. What was answered here is passed over. */
function following(queue, id, key) {
  const place = queue.indexOf(id);
  const before = queue.slice(0, Math.max(0, place)).reverse();
  const isOpen = (other) => !answered.has(other);
  if (key === "k") return before.find(isOpen);
  return queue.slice(place + 1).find(isOpen) ?? before.find(isOpen);
}

/* Show the kept keys as not used. */
function refuseKeys() {
  if (!held.length) return;
  const line = document.querySelector("#unused").content.firstElementChild.cloneNode(true);
  for (const { key } of held) {
    const name = key === " " ? "Space" : key[0].toUpperCase() + key.slice(1);
    line.querySelector("[data-keys]").append(Object.assign(document.createElement("kbd"), { textContent: name }), " ");
  }
  held = [];
  due = null;
  if (document.querySelector("#told")) tell(line);
  else document.querySelector("#notice").replaceChildren(line);
}

function stack() {
  return document.querySelector(".review #stack");
}

function inView() {
  return document.querySelector("#card")?.dataset.card ?? null;
}

function rows() {
  return [...stack().querySelectorAll("[data-row]")].filter((row) => !sent.has(row.dataset.row));
}

function rowOf(id) {
  return stack()?.querySelector(`[data-row="${CSS.escape(id)}"]`);
}

/* The card's own refresh leaves the card as it is: keys need not wait for it. */
function isForMain(event) {
  return event.detail.target?.id === "main" && event.detail.elt.id !== "card" && Boolean(stack());
}

/* --- moving */

function move(step) {
  const id = neighbour(inView(), step);
  if (id && id !== inView()) go(id);
}

/* The card that many rows further, or the same at the end of the queue. */
function neighbour(id, step) {
  const all = rows();
  const place = all.findIndex((row) => row.dataset.row === id);
  return (place < 0 ? all[0] : all[place + step])?.dataset.row ?? id;
}

function onRow(event) {
  const row = event.target.closest?.("[data-row]");
  if (!row || !stack() || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (location.hash === "#beside") location.replace("#main");
  refuseKeys();
  go(row.dataset.row);
}

function go(id) {
  loading = null;
  if (parts.has(id)) return show(id);
  loading = id;
  mark(id);
  rest(true);
  (asked.get(id) ?? fetchParts([id])).finally(() => {
    if (loading !== id) return;
    loading = null;
    rest(false);
    if (parts.has(id)) show(id);
    else open(id);
    release();
  });
}

/* A card that is about to be replaced takes no press and no typing. */
function rest(isResting) {
  const card = document.querySelector("#card");
  if (isResting && card.contains(document.activeElement)) document.querySelector("#main").focus({ preventScroll: true });
  card.inert = isResting;
  if (isResting) card.setAttribute("aria-busy", "true");
  else card.removeAttribute("aria-busy");
}

/* A card that is no longer open: the page says what became of it. */
function open(id) {
  const address = rowOf(id)?.href;
  if (address) htmx.ajax("GET", address, { target: "#main", select: "#main", swap: "outerHTML" });
}

function show(id) {
  rest(false);
  const old = document.querySelector("#card");
  const card = parts.get(id).cloneNode(true);
  document.querySelectorAll("#changed, #resubmitted, #hasty").forEach((notice) => notice.remove());
  const leaves = old.dataset.card;
  if ("open" in old.dataset && !old.dataset.confirming && !parts.has(leaves) && !sent.has(leaves)) parts.set(leaves, old.cloneNode(true));
  const hadFocus = old.contains(document.activeElement);
  ignoreRefresh(old);
  // The queue is scrolled while the page's layout is still known.
  mark(id);
  old.replaceWith(card);
  if (hadFocus) document.querySelector("#main").focus({ preventScroll: true });
  const address = rowOf(id)?.getAttribute("href");
  if (address) history.replaceState(history.state, "", address);
  htmx.trigger(card, "htmx:load");
  afterPaint(() => htmx.process(card));
  clearTimeout(later);
  later = setTimeout(() => {
    prefetch();
    htmx.trigger(document.body, `silas:card:${id}`);
    htmx.trigger(card, "htmx:afterSettle");
  }, SETTLE);
}

/* A refresh of this card that is on its way replaces nothing. */
function ignoreRefresh(card) {
  card?.addEventListener("htmx:beforeOnLoad", (event) => event.preventDefault());
}

function mark(id) {
  stack().querySelector("[aria-current]")?.removeAttribute("aria-current");
  const row = rowOf(id);
  row?.setAttribute("aria-current", "true");
  row?.scrollIntoView({ block: "nearest" });
  const card = document.querySelector(".review > .card");
  if (card) card.scrollTop = 0;
}

/* --- the next cards, before they are asked for */

function prefetch() {
  if (!stack()) return;
  const all = rows().map((row) => row.dataset.row);
  const place = Math.max(0, all.indexOf(inView()));
  const wanted = [...all.slice(place + 1, place + 1 + AHEAD), ...all.slice(Math.max(0, place - 2), place)];
  for (const id of parts.keys()) if (!rowOf(id)) parts.delete(id);
  const missing = wanted.filter((id) => !asked.has(id));
  if (missing.length > 2 || missing.some((id) => !parts.has(id))) fetchParts(missing);
}

/* What a card says never changes; who works on it and what else is open about its record does. */
function renew() {
  asked.clear();
  prefetch();
}

function fetchParts(ids) {
  const coming = ids.length ? bring(ids) : Promise.resolve();
  ids.forEach((id) => asked.set(id, coming));
  return coming;
}

async function bring(ids) {
  try {
    const query = ids.map((id) => `id=${id}`).join("&");
    const response = await fetch(`${stack().dataset.parts}?${query}`, { headers: { "HX-Request": "true" } });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    ids.forEach((id) => parts.delete(id));
    for (const card of found.querySelectorAll("article[data-card]")) parts.set(card.dataset.card, document.adoptNode(card));
  } catch {
    ids.forEach((id) => asked.delete(id));
  }
}

/* --- deciding */

function onAnswer(event) {
  const form = event.target;
  if (!stack() || !form.matches("#answer, #declining, #undoable form") || !event.submitter) return;
  const button = event.submitter;
  if (form.matches("[data-step-up]") && button.matches("[data-approve]")) return;
  event.preventDefault();
  event.stopPropagation();
  if (sent.has(form.closest("#card")?.dataset.card)) return;
  if (form.id === "answer" && button.value === "decline" && form.parentElement.querySelector("#declining")) return askWhy(form);
  if (button.dataset.confirmation && !confirming.has(form)) return confirmFirst(form, button);
  answer(form, button);
}

/* The first press of a medium card: the same form asks for the second. */
function confirmFirst(form, button) {
  const card = form.closest("#card");
  const extra = form.querySelector("template").content.cloneNode(true);
  const confirmed = Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: button.value });
  const added = [confirmed, ...extra.children];
  const gone = [...form.querySelectorAll("[data-approve], [data-key=e], [data-key=q]")].filter((one) => one !== button);
  gone.forEach((one) => { one.hidden = true; });
  confirming.set(form, { button, label: button.querySelector("bdi").textContent, primary: button.classList.contains("primary"), added, gone });
  button.before(added[0], added[1]);
  button.after(added[2]);
  button.querySelector("bdi").textContent = button.dataset.confirmation;
  button.classList.add("primary");
  button.focus({ preventScroll: true });
  card.dataset.confirming = button.value;
}

/* The first press of Decline asks for the reason, in a form in which nothing approves: Enter or D declines. */
function askWhy(form) {
  const declining = form.parentElement.querySelector("#declining");
  form.hidden = true;
  declining.hidden = false;
  form.closest("#card").dataset.confirming = "decline";
  declining.querySelector("[type=radio]").focus({ preventScroll: true });
}

function closeReasons(form) {
  form.hidden = true;
  form.parentElement.querySelector("#answer").hidden = false;
  delete form.closest("#card").dataset.confirming;
}

function onStepBack(event) {
  const form = event.target.closest?.("[data-step-back]")?.form;
  if (form?.id === "declining") return closeReasons(form);
  if (!confirming.has(form)) return;
  const { button, label, primary, added, gone } = confirming.get(form);
  added.forEach((one) => one.remove());
  gone.forEach((one) => { one.hidden = false; });
  button.querySelector("bdi").textContent = label;
  button.classList.toggle("primary", primary);
  confirming.delete(form);
  delete form.closest("#card").dataset.confirming;
}

function answer(form, button) {
  const isResult = form.matches("#undoable form");
  const id = isResult ? "" : form.closest("#card").dataset.card;
  const order = { address: form.action, body: new FormData(form, button), id, form };
  if (isResult) form.remove();
  else {
    const all = rows();
    const place = all.findIndex((row) => row.dataset.row === id);
    const next = all[place + 1] ?? all[place - 1];
    sent.set(id, order);
    answered.add(id);
    hideSent();
    if (next && place >= 0) go(next.dataset.row);
    else if (form.id === "declining") form.hidden = true;
    else {
      loading = id;
      form.querySelectorAll("button").forEach((one) => { one.disabled = true; });
    }
  }
  if (form.id === "declining") hold(order, button);
  else chain = chain.then(() => send(order));
}

/* A card that is declined stays open for the time in which that can be undone. A page that is left sends it at once. */
function hold(order, button) {
  const line = document.querySelector("#declined").content.firstElementChild.cloneNode(true);
  line.dataset.held = order.id;
  line.dataset.until = new Date(Date.now() + UNDO).toISOString();
  line.querySelector("b").textContent = order.form.closest("#card").querySelector("#intent").textContent;
  const older = document.querySelector("#told [data-held] [data-key]");
  older?.removeAttribute("data-key");
  older?.querySelector("kbd").remove();
  tell(line);
  countDown();
  order.held = setTimeout(() => {
    order.held = null;
    line.remove();
    if (inView() === order.id) loading = order.id;
    chain = chain.then(() => send(order));
  }, UNDO);
}

function onUndo(event) {
  const line = event.target.closest?.("[data-undo]")?.closest("[data-held]");
  const order = sent.get(line?.dataset.held);
  if (!order?.held) return;
  clearTimeout(order.held);
  line.remove();
  sent.delete(order.id);
  unhide(order.id);
  closeReasons(order.form);
  if (inView() !== order.id) go(order.id);
}

function sendHeld() {
  for (const order of sent.values()) {
    if (!order.held) continue;
    clearTimeout(order.held);
    fetch(order.address, { method: "POST", body: order.body, headers: headers(), redirect: "manual", keepalive: true });
  }
}

function headers() {
  return { ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"), "HX-Request": "true", "HX-Current-URL": location.href, "X-Review-Advanced": "1" };
}

async function send(order) {
  let response = null;
  try {
    response = await fetch(order.address, { method: "POST", body: order.body, headers: headers(), redirect: "manual" });
    if (response.status === 401) return location.assign(response.headers.get("HX-Redirect") ?? location.href);
    if (response.type === "opaqueredirect") return location.reload();
  } catch {
    fail("#lost", order);
    return;
  }
  const found = new DOMParser().parseFromString(await response.text(), "text/html");
  const message = found.querySelector("#decided");
  sent.delete(order.id);
  if (response.ok && message) {
    parts.delete(order.id);
    rowOf(order.id)?.closest("li").remove();
    tell(message);
    if (loading === order.id) finish();
  } else if (response.status < 500 && found.querySelector("#main")) refused(order, found);
  else fail("#broken", order);
}

/* Nothing else waits: show what the server shows now, not what the card's own refresh brings. */
function finish() {
  loading = null;
  ignoreRefresh(document.querySelector("#card"));
  htmx.ajax("GET", "/console/review/", { target: "#main", select: "#main", swap: "outerHTML" });
}

/* The answer decided nothing. Its card is shown if it is still in view, otherwise a message leads to it. */
function refused(order, found) {
  unhide(order.id);
  if (!order.id || loading === order.id || inView() === order.id) {
    loading = null;
    document.querySelector("#main").replaceWith(document.adoptNode(found.querySelector("#main")));
    const main = document.querySelector("#main");
    htmx.process(main);
    htmx.trigger(main, "htmx:load");
    htmx.trigger(main, "htmx:afterSettle");
    release();
    return;
  }
  const why = found.querySelector("#card > .notice, #changed")?.textContent.trim() ?? "";
  leadBack(order, [found.querySelector("#intent")?.textContent.trim(), why].filter(Boolean).join(": "));
}

/* A message that leads to a card which was not decided. The card in view stays, so that no key meets another one. */
function leadBack(order, words) {
  const line = document.createElement("p");
  line.className = "notice toast bad";
  line.dataset.about = order.id;
  const link = Object.assign(document.createElement("a"), { className: "btn small", textContent: text("view") });
  link.href = order.address.replace("decision/", "") + location.search;
  line.append(Object.assign(document.createElement("span"), { textContent: words }), link);
  tell(line);
}

/* Nothing arrived, or the server failed: the card is back in the queue. */
function fail(words, order) {
  const notice = document.querySelector("#notice");
  notice.replaceChildren(document.querySelector(words).content.cloneNode(true));
  notice.focus();
  sent.delete(order.id);
  unhide(order.id);
  if (loading === order.id) loading = null;
  order.form.querySelectorAll("button").forEach((one) => { one.disabled = false; });
  if (order.form.id === "declining") closeReasons(order.form);
  if (order.id && (loading || inView() !== order.id)) leadBack(order, order.form.closest("#card").querySelector("#intent").textContent);
  release();
}

function hideSent() {
  for (const id of sent.keys()) rowOf(id)?.closest("li").setAttribute("hidden", "");
}

function unhide(id) {
  answered.delete(id);
  if (id) rowOf(id)?.closest("li").removeAttribute("hidden");
}

/* --- messages */

function tell(line) {
  document.querySelectorAll("#decided").forEach((old) => old.removeAttribute("id"));
  const told = document.querySelector("#told");
  if (!told) return;
  const added = document.adoptNode(line);
  told.prepend(added);
  for (const old of [...told.children].slice(3)) if (!old.dataset.held) old.remove();
  htmx.process(added);
  if (!added.dataset.held) setTimeout(() => added.remove(), TOLD);
}

function countDown() {
  for (const line of document.querySelectorAll("[data-until]")) {
    const left = Math.ceil((Date.parse(line.dataset.until) - Date.now()) / 1000);
    if (left <= 0) line.remove();
    else line.querySelector("[data-left]").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }
}
