/* Menus: a click elsewhere and Esc close them, arrows move in them. A form with `data-at-once` is sent when it changes. */

const CAN_HOLD_FOCUS = "a[href], button:not([disabled]), select, input:not([type=hidden])";

export function watchMenus() {
  document.addEventListener("click", (event) => {
    for (const menu of opened()) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("keydown", (event) => {
    const menu = opened().at(-1);
    if (!menu || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") close(menu, event);
    else if (menu.contains(event.target) && !event.target.matches("select, input, textarea")) move(menu, event);
  });
  document.addEventListener("change", (event) => event.target.closest("form[data-at-once]")?.requestSubmit());
}

const opened = () => [...document.querySelectorAll("details[open]:has(> .menu)")];

function close(menu, event) {
  event.preventDefault();
  event.stopImmediatePropagation();
  menu.open = false;
  menu.querySelector("summary").focus();
}

function move(menu, event) {
  const all = [...menu.querySelectorAll(`:scope > .menu :is(${CAN_HOLD_FOCUS})`)].filter((one) => one.checkVisibility());
  const at = all.indexOf(document.activeElement);
  const to = { ArrowDown: (at + 1) % all.length, ArrowUp: at < 1 ? all.length - 1 : at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined || !all.length) return;
  event.preventDefault();
  all[to].focus();
}
