/* The inbox: Alt and a letter trigger the element that carries it, menus close after a click, and the list is refreshed when
   a snoozed conversation is due. A refresh leaves the contact panel alone while one of its parts is in use. */

const LONGEST_TIMER = 2147483647;
let due;

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
  const all = [...document.querySelectorAll("#conversations li > a")];
  const at = all.findIndex((each) => each.ariaCurrent === "true");
  (at < 0 ? all[0] : all[at + step])?.click();
}

function press(letter) {
  const carrier = document.querySelector(`[data-alt="${letter}"]`) ?? (letter === "a" ? document.querySelector("#assign-me") : null);
  if (!carrier) return false;
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
