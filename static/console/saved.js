/* "Saved" beside the button: a form with `data-saves` that led to a redirect back to its page says so there, and the page
   stays where it was. */

import { text } from "./texts.js";

const KEPT = "silas:saving";

export function watchSaves() {
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-saves]");
    if (form) sessionStorage.setItem(KEPT, JSON.stringify({ form: form.dataset.saves, path: location.pathname, top: scrollY }));
  });
  tell();
}

function tell() {
  const said = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  const [arrival] = performance.getEntriesByType("navigation");
  if (said?.path !== location.pathname || !arrival?.redirectCount) return;
  const button = document.querySelector(`form[data-saves="${CSS.escape(said.form)}"] button:not([name])`);
  if (!button) return;
  const place = document.createElement("span");
  place.className = "saved";
  place.setAttribute("role", "status");
  button.after(place);
  place.textContent = text("saved");
  scrollTo(0, said.top);
}
