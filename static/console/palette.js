/* The command palette, opened with Ctrl or Cmd and K. It is a combobox: the focus stays in the field, which names the
   selected line. */

const SOON = 120;

let asked = 0;
let timer;
/* The text that the shown list answers. */
let answers;

export function watchPalette() {
  const palette = document.querySelector("#palette");
  if (!palette) return;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") toggle(event);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-opens=palette]")) open();
    else if (event.target === palette) palette.close();
  });
  field().addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, SOON);
  });
  field().addEventListener("keydown", move);
}

const field = () => document.querySelector("#palette-field");
const list = () => document.querySelector("#palette-list");
const lines = () => [...list().querySelectorAll("a[role=option]")];

function toggle(event) {
  event.preventDefault();
  const palette = document.querySelector("#palette");
  if (palette.open) palette.close();
  else if (!document.querySelector("dialog[open]")) open();
}

function open() {
  document.querySelector("#palette").showModal();
  field().value = "";
  answers = undefined;
  ask();
}

/* Only the response to the latest request is shown. */
async function ask() {
  const number = ++asked;
  const said = field().value;
  const answer = await fetch(`${list().dataset.from}?q=${encodeURIComponent(said)}`, {
    credentials: "same-origin", headers: { "HX-Request": "true", "HX-Current-URL": location.href },
  }).catch(() => null);
  if (number !== asked) return;
  if (answer?.status === 401) location.assign(answer.headers.get("HX-Redirect"));
  else if (!answer?.ok) list().replaceChildren(document.querySelector("#palette-lost").content.cloneNode(true));
  else list().innerHTML = await answer.text();
  answers = answer?.ok ? said : undefined;
  choose(lines()[0]);
}

/* If the text is newer than the list, load the list first. */
async function go() {
  if (answers !== field().value) {
    clearTimeout(timer);
    await ask();
  }
  if (answers === field().value) lines().find((line) => line.getAttribute("aria-selected") === "true")?.click();
}

function move(event) {
  if (event.isComposing) return;
  const all = lines();
  const at = all.findIndex((line) => line.getAttribute("aria-selected") === "true");
  const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Enter: at }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  if (event.key === "Enter") go();
  else choose(all[to]);
}

function choose(line) {
  lines().forEach((one) => one.setAttribute("aria-selected", String(one === line)));
  if (line) field().setAttribute("aria-activedescendant", line.id);
  else field().removeAttribute("aria-activedescendant");
  line?.scrollIntoView({ block: "nearest" });
}
