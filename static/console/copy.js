/* Buttons that copy code to the clipboard and confirm it. Without a clipboard (plain http) the code is selected instead. */

import { text } from "./texts.js";

export function watchCopies() {
  show(document);
  document.addEventListener("htmx:load", (event) => show(event.detail.elt));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
}

function show(part) {
  part.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
}

async function copy(button) {
  const code = document.getElementById(button.dataset.copy);
  const words = button.dataset.words ??= button.textContent;
  const done = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
  if (!done) getSelection().selectAllChildren(code);
  button.textContent = text(done ? "copied" : "press_to_copy");
  setTimeout(() => { button.textContent = words; }, 4000);
}
