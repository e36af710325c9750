/* Does the card fit the phone? Where its body scrolls, it can be reached with the keyboard. */

export function watchFit() {
  fit();
  document.addEventListener("htmx:afterSettle", fit);
  addEventListener("resize", fit);
}

function fit() {
  const body = document.querySelector(".review .card > .body");
  if (!body) return;
  if (body.scrollHeight > body.clientHeight) body.tabIndex = 0;
  else body.removeAttribute("tabindex");
}
