/* The search of Settings: a field with `data-sifts` hides the lines of that list whose words do not begin with what is
   typed. Enter opens the first that is left. */

export function watchSettings() {
  document.querySelector(".settings-nav [aria-current]")?.scrollIntoView({ block: "nearest" });
  document.addEventListener("input", (event) => event.target.dataset?.sifts && sift(event.target));
  document.addEventListener("submit", (event) => {
    const field = event.target.querySelector("[data-sifts]");
    const first = field?.value.trim() && lines(field).find((line) => !line.hidden)?.querySelector("a");
    if (!first) return;
    event.preventDefault();
    location.assign(first.href);
  });
}

const list = (field) => document.getElementById(field.dataset.sifts);
const lines = (field) => [...list(field).querySelectorAll("[data-words]")];

function sift(field) {
  const wanted = field.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  for (const line of lines(field)) {
    const own = line.dataset.words.toLocaleLowerCase().split(/\s+/);
    line.hidden = !wanted.every((part) => own.some((word) => word.startsWith(part)));
  }
  for (const group of list(field).querySelectorAll("[data-group]")) group.hidden = !group.querySelector("[data-words]:not([hidden])");
  document.getElementById(`${field.dataset.sifts}-none`).hidden = lines(field).some((line) => !line.hidden);
}
