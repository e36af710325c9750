/* The selection of conversations. It survives refreshes of the list; the bar shows the count. After an action the selection is
   cleared. */

import { text } from "./texts.js";

const ticks = () => [...document.querySelectorAll("#conversations [name=pick]")];
let picked = new Set();

export function watchSeveral() {
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[name=pick]")) return;
    if (event.target.checked) picked.add(event.target.value);
    else picked.delete(event.target.value);
    count();
  });
  document.addEventListener("reset", (event) => event.target.id === "several" && choose([]));
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-pick-all]")) choose(ticks().map((each) => each.value));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches?.("[name=pick]") && picked.size) choose([]);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.target.id === "several") choose([]);
  });
  document.addEventListener("htmx:afterSettle", again);
  again();
}

function choose(values) {
  picked = new Set(values);
  again();
}

/* Only conversations in the list can be selected. */
function again() {
  const there = ticks();
  for (const each of there) each.checked = picked.has(each.value);
  picked = new Set(there.filter((each) => each.checked).map((each) => each.value));
  count();
}

function count() {
  const bar = document.querySelector("#several");
  if (!bar) return;
  bar.querySelector("[data-picked]").textContent = text("selected", { number: picked.size });
  bar.querySelector("[data-pick-all]").hidden = picked.size === ticks().length;
}
