/* Where is the visitor asked? In a dialog over the conversation; the page that it is fetched from is the same without
   scripts. What was begun and put away is gone, as with any dialog. */

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
