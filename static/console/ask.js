/* The form for asking the visitor, in a dialog over the conversation. Without scripts it is a page of its own. Closing the
   dialog discards what was typed. */

export function watchAsking() {
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    const dialog = document.querySelector("dialog.asking");
    if (detail.target !== dialog || !dialog.firstElementChild) return;
    if (!dialog.open) dialog.showModal();
    (dialog.querySelector("[role=alert]") ?? dialog.querySelector("[type=radio]:checked"))?.focus();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("dialog.asking [data-shut]")) return;
    event.preventDefault();
    event.target.closest("dialog").close();
  });
}
