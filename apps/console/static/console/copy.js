/* How does a piece of code get into the clipboard? A button names what it copies and says when it did. Where the browser
   gives no clipboard (plain http), the code is selected, ready for the keys. */

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
  button.textContent = done ? "Copied" : "Selected: copy it with the keys";
  setTimeout(() => { button.textContent = words; }, 4000);
}
