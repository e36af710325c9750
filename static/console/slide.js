/* The slider of risky cards: approving works only while it is at its end. */

export function watchSlides() {
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-slide]")) guard(event.target);
  });
  document.addEventListener("pointerup", (event) => {
    if (!event.target.matches("[data-slide]") || event.target.value === event.target.max) return;
    event.target.value = 0;
    guard(event.target);
  });
  document.addEventListener("htmx:load", (event) => event.detail.elt.querySelectorAll("[data-slide]").forEach(guard));
  document.querySelectorAll("[data-slide]").forEach(guard);
}

function guard(slide) {
  const done = slide.value === slide.max;
  slide.style.setProperty("--done", `${slide.value}%`);
  slide.form.querySelectorAll("[data-approve]").forEach((button) => { button.disabled = !done; });
}
