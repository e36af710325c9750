/* Keyboard shortcuts: a key clicks the one element with that `data-key`; ? opens the list of shortcuts. */

import { replayKey } from "./replay.js";
import { takeKey } from "./review.js";

export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) return key === "escape" && leave(event);
    if (takeKey(key, event.repeat)) event.preventDefault();
    else if (key === "?") {
      event.preventDefault();
      document.querySelector("#help").showModal();
    } else if (!event.repeat) press(key, event);
  });
}

/* Press again, in order, what was pressed before the scripts were there. */
export function pressEarlyKeys() {
  for (const init of window.takeEarlyKeys?.() ?? []) replayKey(init);
}

function isTyping(target) {
  return target.matches?.("input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable]");
}

/* Esc in a field leaves the field if something was typed, and steps back otherwise. */
function leave(event) {
  const field = event.target;
  if (!field.closest(".review")) return;
  if ("defaultValue" in field && field.value !== field.defaultValue) field.blur();
  else press("escape", event);
}

function press(key, event) {
  const wanted = [...document.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find((one) => !one.closest("[hidden]"));
  if (!wanted) return;
  event.preventDefault();
  if (wanted.disabled) document.querySelector("[data-slide]")?.focus();
  else {
    wanted.click();
    if (wanted.matches("summary")) wanted.focus();
  }
}
