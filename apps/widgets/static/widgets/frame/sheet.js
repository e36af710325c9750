/* What else can be done here? One sheet behind one button in the header; each part puts what it has, made anew whenever
   the sheet is opened. Without anything in it there is no button. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { say } from "./words_beside.js";

export function wireSheet(chat) {
  const sections = new Map();
  const body = el("div", { class: "beside", tabindex: "0" });
  const title = el("h2", { id: "beside-title" });
  const shut = el("button", { type: "button", class: "icon", onclick: () => sheet.close() }, cross());
  const sheet = el("dialog", { "data-beside": true, "aria-labelledby": title.id }, el("header", {}, title, shut), body);
  const button = el("button", { type: "button", class: "icon", "data-more": true, "aria-haspopup": "dialog", hidden: true, onclick: open }, dots());
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  sheet.addEventListener("close", () => button.focus());
  document.body.append(sheet);
  part("close").before(button);

  function open() {
    body.replaceChildren(...[...sections.values()].filter(Boolean).map((make) => make()));
    sheet.showModal();
  }

  function name() {
    title.textContent = say("sheet");
    button.setAttribute("aria-label", say("sheet"));
    shut.setAttribute("aria-label", say("back"));
  }

  chat.when("language", name);
  chat.when("renewed", () => sheet.close());
  chat.sheet = {
    /* `make`: what makes the section, or nothing to take it out. */
    put(key, make) {
      sections.set(key, make);
      name();
      button.hidden = ![...sections.values()].some(Boolean);
    },
    close: () => sheet.close(),
  };
}

function icon(...paths) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.append(...paths.map((d) => {
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", d);
    return path;
  }));
  return svg;
}

const cross = () => icon("M6 6l12 12M18 6L6 18");
const dots = () => icon("M5 12h.01M12 12h.01M19 12h.01");
export const clip = () => icon("M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.3 3.3 0 0 1 4.7 4.7l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4L14.5 7");
