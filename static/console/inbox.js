/* The inbox: Alt and a letter trigger the element that carries it, menus close after a click, and the list is refreshed when
   a snoozed conversation is due. A refresh leaves the contact panel alone while one of its parts is in use. The conversations
   next to the open one are fetched before they are asked for and shown at once. Fetching one marks nothing as read: what is
   shown does (company.js). */

import { afterPaint } from "./after_paint.js";

const LONGEST_TIMER = 2147483647;
/* Milliseconds before prefetching: after a page has settled, and after news. */
const SETTLE = 350;
const RENEW = 2000;
/* What was fetched longer ago is refreshed when it is shown, and so is what was fetched before the last news. */
const STAYS_TRUE = 30000;
/* Conversations that are fetched below the open one; above it, one is. */
const AHEAD = 2;
const PARTS = ["thread", "contact"];
const ADDRESSES = ["href", "action", "hx-get", "hx-post"];
let due;
let prefetchTimer;
let shownTabs = null;
/* The parts of each fetched conversation with the moment they were asked for, by its address; null while they are on their
   way. */
const fetched = new Map();
/* Something changed since they were fetched. */
let isStale = false;
let lastNews = 0;

export function watchInbox() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => closeMenus(event.target.closest?.(".pick")));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.target.matches("#assign-form, #snooze-form, #several")) closeMenus(null);
  });
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id === "contact" && isInUse(event.detail.target)) event.detail.shouldSwap = false;
  });
  document.addEventListener("toggle", lookAgain, true);
  document.addEventListener("htmx:afterSettle", awaitDue);
  awaitDue();
  document.addEventListener("htmx:afterSettle", showTab);
  showTab();
  document.addEventListener("click", onRow);
  document.addEventListener("htmx:afterSettle", () => prefetchSoon(SETTLE));
  document.body.addEventListener("silas:inbox", () => {
    isStale = true;
    lastNews = Date.now();
    prefetchSoon(RENEW);
  });
  prefetchSoon(SETTLE);
}

const rows = () => [...document.querySelectorAll("#conversations li > a")];
const openRow = (all) => all.findIndex((each) => each.ariaCurrent === "true");

/* --- the conversations next to the open one */

function prefetchSoon(wait) {
  clearTimeout(prefetchTimer);
  prefetchTimer = setTimeout(prefetch, wait);
}

function prefetch() {
  const all = rows();
  const at = openRow(all);
  if (at < 0 || document.hidden) return;
  const near = [...all.slice(at + 1, at + 1 + AHEAD), ...all.slice(Math.max(0, at - 1), at)].map((row) => row.href);
  for (const address of fetched.keys()) if (!near.includes(address)) fetched.delete(address);
  near.filter((address) => isStale || !fetched.has(address)).forEach(prefetchOne);
  isStale = false;
}

async function prefetchOne(address) {
  const askedAt = Date.now();
  if (!fetched.has(address)) fetched.set(address, null);
  try {
    const response = await fetch(address, { headers: { "HX-Request": "true", "HX-Target": "log" } });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    const found = new DOMParser().parseFromString(await response.text(), "text/html");
    const parts = PARTS.map((id) => found.getElementById(id));
    if (parts.includes(null)) throw new Error("no conversation");
    if (fetched.has(address)) fetched.set(address, { parts, askedAt });
  } catch {
    fetched.delete(address);
  }
}

function onRow(event) {
  const row = event.target.closest?.("#conversations li > a");
  const found = row && fetched.get(row.href);
  // A page with unsent files asks before it is left.
  if (!found || document.querySelector("#attached button") || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(row, found);
}

/* The tabs scroll where they are wider than the list. New ones begin at their start; others stay where their reader left
   them. */
function showTab() {
  const tabs = document.querySelector("#tabs");
  if (tabs !== shownTabs) tabs?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  shownTabs = tabs;
}

function show(row, { parts, askedAt }) {
  const before = location.pathname;
  const hadFocus = document.querySelector("#thread").contains(document.activeElement);
  fetched.delete(row.href);
  // The list is scrolled while the page's layout is still known.
  row.scrollIntoView({ block: "nearest" });
  const [thread, contact] = parts;
  replace(thread);
  document.querySelector("#conversations li > a[aria-current]")?.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  row.classList.remove("unread");
  row.querySelector(".badge")?.remove();
  history.replaceState(history.state, "", row.href);
  if (hadFocus) document.querySelector("#main").focus({ preventScroll: true });
  htmx.trigger(thread, "htmx:load");
  htmx.trigger(thread, "htmx:afterSettle");
  const log = thread.querySelector("#log");
  log.scrollTop = log.scrollHeight;
  afterPaint(() => {
    // Beside the conversation, and read after it.
    replace(contact);
    for (const part of parts) htmx.process(part);
    repointList(before, location.pathname);
  });
  if (askedAt > lastNews && Date.now() - askedAt < STAYS_TRUE) return;
  setTimeout(() => htmx.trigger(document.body, `silas:session:${thread.dataset.session}`), SETTLE);
}

const replace = (part) => document.getElementById(part.id).replaceWith(document.adoptNode(part));

/* Links and forms of the list contain the address of the open conversation: replace that of the one before. */
function repointList(before, now) {
  const list = document.querySelector("#list");
  for (const name of ADDRESSES) {
    for (const one of list.querySelectorAll(`[${name}^="${before}"]`)) {
      if (!one.matches("#conversations li > a")) one.setAttribute(name, now + one.getAttribute(name).slice(before.length));
    }
  }
  htmx.process(list);
}

function onKey(event) {
  if (event.key === "Escape") return leaveMenu(event.target);
  if (!event.altKey || event.ctrlKey || event.metaKey || !event.code?.startsWith("Key")) return;
  if (document.querySelector("dialog[open]") || !document.querySelector(".inbox")) return;
  const letter = event.code.slice(3).toLowerCase();
  if (letter === "j" || letter === "k") go(letter === "j" ? 1 : -1);
  else if (!press(letter)) return;
  event.preventDefault();
}

/* Open the next or previous conversation of the list; the first if none is open. */
function go(step) {
  const all = rows();
  const at = openRow(all);
  (at < 0 ? all[0] : all[at + step])?.click();
}

function press(letter) {
  const carrier = document.querySelector(`[data-alt="${letter}"]`) ?? (letter === "a" ? document.querySelector("#assign-me") : null);
  if (!carrier) return false;
  if (carrier.matches("input")) {
    carrier.focus();
    carrier.select();
    return true;
  }
  carrier.click();
  const menu = carrier.closest("details");
  if (carrier.matches("summary") && menu) (menu.open ? menu.querySelector("a, button, select") ?? carrier : carrier).focus();
  return true;
}

function closeMenus(but) {
  for (const menu of document.querySelectorAll(".pick[open]")) if (menu !== but) menu.open = false;
}

function leaveMenu(target) {
  const menu = target.closest?.(".pick[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
}

function isInUse(part) {
  return part.querySelector("details[open], .htmx-request") !== null;
}

/* Refresh the contact panel after one of its parts was closed. */
function lookAgain(event) {
  const log = document.querySelector("[data-log]");
  if (log && !event.target.open && event.target.closest("#contact")) htmx.trigger(document.body, log.getAttribute("hx-trigger").split(" ")[0]);
}

function awaitDue() {
  const at = Date.parse(document.querySelector("#conversations[data-due]")?.dataset.due);
  clearTimeout(due);
  if (at) due = setTimeout(() => htmx.trigger(document.body, "silas:inbox"), Math.min(LONGEST_TIMER, Math.max(500, at - Date.now() + 500)));
}
