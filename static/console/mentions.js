/* Type-ahead of teammates in private notes: `@` and the beginning of a name open the list, arrows move, Enter or Tab inserts,
   Escape closes. The server reads the mentions from the text. */

const TYPED = /(?:^|[^\p{L}\p{N}_@])@([^@\n]{0,40})$/u;
let closed = null;

export function watchMentions() {
  document.addEventListener("input", (event) => {
    if (event.target.id !== "note-text") return;
    closed = null;
    narrow(event.target);
  });
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("click", (event) => {
    const option = event.target.closest?.("#mention-list [role=option]");
    if (option) insert(option);
    else hide();
  });
}

const area = () => document.querySelector("#note-text");
const list = () => document.querySelector("#mention-list");
const options = () => [...list().querySelectorAll("[role=option]:not([hidden])")];
const typed = ({ value, selectionStart }) => TYPED.exec(value.slice(0, selectionStart))?.[1];

function narrow(field) {
  const name = typed(field)?.toLocaleLowerCase();
  const isOpen = name !== undefined && name !== closed;
  for (const option of list().querySelectorAll("[role=option]")) {
    const own = option.dataset.name.toLocaleLowerCase();
    option.hidden = !isOpen || !(own.startsWith(name) || own.includes(` ${name}`));
  }
  list().hidden = !options().length;
  mark(options()[0]);
}

function mark(option) {
  for (const each of list().querySelectorAll("[role=option]")) each.ariaSelected = String(each === option);
  if (!option) return area().removeAttribute("aria-activedescendant");
  area().setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.target.id !== "note-text" || list().hidden || event.isComposing) return;
  const there = options();
  const at = there.findIndex((each) => each.ariaSelected === "true");
  if (event.key === "ArrowDown") mark(there[(at + 1) % there.length]);
  else if (event.key === "ArrowUp") mark(there[(at - 1 + there.length) % there.length]);
  else if (event.key === "Enter" || event.key === "Tab") insert(there[at]);
  else if (event.key === "Escape") {
    closed = typed(area())?.toLocaleLowerCase();
    hide();
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function insert(option) {
  const field = area();
  const end = field.selectionStart;
  field.setRangeText(`${option.dataset.name} `, end - typed(field).length, end, "end");
  hide();
  field.focus();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  hide();
}

function hide() {
  if (!list() || list().hidden) return;
  list().hidden = true;
  mark(null);
}
