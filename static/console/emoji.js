/* The emoji menu of both composers inserts at the cursor. */

export function watchEmoji() {
  document.addEventListener("click", (event) => {
    const chosen = event.target.closest?.("[data-emoji] .menu button");
    if (chosen) insert(chosen);
  });
  document.addEventListener("htmx:afterSettle", show);
  show();
}

function insert(button) {
  button.closest("details").open = false;
  const area = button.closest("form").querySelector("textarea");
  area.focus();
  area.setRangeText(button.textContent, area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

function show() {
  for (const menu of document.querySelectorAll("[data-emoji]")) menu.hidden = false;
}
