/* The sheet behind the header's More button. Parts put sections into it, which are built whenever it opens; without any there
   is no button. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { panelText } from "./i18n.js";

export function wireSheet(chat) {
  const sections = new Map();
  const body = el("div", { class: "beside", tabindex: "0" });
  const title = el("h2", { id: "beside-title" });
  const closeButton = el("button", { type: "button", class: "icon", onclick: () => sheet.close() }, cross());
  const sheet = el("dialog", { "data-beside": true, "aria-labelledby": title.id }, el("header", {}, title, closeButton), body);
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
    title.textContent = panelText("sheet");
    button.setAttribute("aria-label", panelText("sheet"));
    closeButton.setAttribute("aria-label", panelText("back"));
  }

  chat.on("language", name);
  chat.on("renewed", () => sheet.close());
  chat.sheet = {
    /* `make` builds the section; a falsy value removes it. */
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
