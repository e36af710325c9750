/* The list of canned replies. A slash at the start of a line opens it; typing filters, arrows move, Enter inserts the reply,
   Escape writes the slash. All replies are in the page, so no request is needed. */

let area = null;
let slash = false;

export function watchCanned() {
  document.addEventListener("beforeinput", (event) => {
    if (event.data !== "/" || event.isComposing || !event.target.matches("[data-composer] textarea") || !atStart(event.target)) return;
    event.preventDefault();
    open(event.target, true);
  });
  document.addEventListener("click", (event) => {
    const option = event.target.closest?.("#canned [role=option]");
    if (option) choose(option);
    else if (event.target.closest?.("[data-canned]")) open(event.target.closest("form").querySelector("textarea"), false);
    else if (!event.target.closest?.("#canned")) close();
  });
  document.addEventListener("input", (event) => event.target.id === "canned-find" && narrow());
  document.addEventListener("keydown", (event) => event.target.id === "canned-find" && onKey(event));
}

function atStart({ value, selectionStart }) {
  return selectionStart === 0 || value[selectionStart - 1] === "\n";
}

function open(target, bySlash) {
  [area, slash] = [target, bySlash];
  box().hidden = false;
  document.querySelector("[data-canned]")?.setAttribute("aria-expanded", "true");
  find().value = "";
  narrow();
  find().focus();
}

function close() {
  if (!box() || box().hidden) return;
  box().hidden = true;
  document.querySelector("[data-canned]")?.setAttribute("aria-expanded", "false");
}

function onKey(event) {
  const there = options();
  const at = there.findIndex((each) => each.ariaSelected === "true");
  if (event.key === "ArrowDown") mark(there[(at + 1) % there.length]);
  else if (event.key === "ArrowUp") mark(there[(at - 1 + there.length) % there.length]);
  else if (event.key === "Enter") there[at] && choose(there[at]);
  else if (event.key === "Escape") leave();
  else if (event.key === "Backspace" && !find().value) back("");
  else return;
  event.preventDefault();
}

function leave() {
  back(slash ? "/" : "");
}

function choose(option) {
  back(option.dataset.text);
}

/* Return to the composer and insert these words at the cursor. */
function back(words) {
  close();
  const into = area?.isConnected ? area : document.querySelector(`#${area?.id}`);
  if (!into) return;
  into.focus();
  if (words) into.setRangeText(words, into.selectionStart, into.selectionEnd, "end");
  into.dispatchEvent(new Event("input", { bubbles: true }));
}

function narrow() {
  const wanted = find().value.trim().toLowerCase();
  for (const option of box().querySelectorAll("[role=option]")) {
    option.hidden = !`${option.querySelector("b").textContent} ${option.dataset.text}`.toLowerCase().includes(wanted);
    option.ariaSelected = "false";
  }
  const there = options();
  box().querySelector("[role=listbox]").hidden = there.length === 0;
  box().querySelector(".none").hidden = there.length > 0;
  find().removeAttribute("aria-activedescendant");
  mark(there[0]);
}

function mark(option) {
  if (!option) return;
  for (const each of options()) each.ariaSelected = String(each === option);
  find().setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

const box = () => document.querySelector("#canned");
const find = () => document.querySelector("#canned-find");
const options = () => [...box().querySelectorAll("[role=option]:not([hidden])")];
