/* Makes the body of a card focusable where it scrolls, so that the keyboard can reach all of it. */

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
