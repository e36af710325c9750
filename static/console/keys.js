/* Keyboard shortcuts: a key clicks the one element with that `data-key`; ? opens the list of shortcuts. */

export function watchKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const key = event.key.toLowerCase();
    if (document.querySelector("dialog[open]")) return;
    if (key === "?") document.querySelector("#help").showModal();
    else press(key, event);
  });
}

function isTyping(target) {
  return target.matches("input:not([type=range]), textarea, select, [contenteditable]");
}

function press(key, event) {
  const wanted = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!wanted) return;
  event.preventDefault();
  if (wanted.disabled) document.querySelector("[data-slide]")?.focus();
  else wanted.click();
}
