/* The sheet behind the header's More button. Parts put sections into it, which are built whenever it opens; without any there
   is no button. Loaded with the first part that has a section. */

import { part } from "./chat.js";
import { el, icon } from "./dom.js";
import { panelText } from "./i18n.js";

const ORDER = ["conversations", "transcript", "elsewhere", "rating"];

export function sheetOf(chat) {
  chat.sheet ??= made(chat);
  return chat.sheet;
}

function made(chat) {
  const sections = {};
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
    body.replaceChildren(...ORDER.filter((key) => sections[key]).map((key) => sections[key]()));
    sheet.showModal();
  }

  function name() {
    title.textContent = panelText("sheet");
    button.setAttribute("aria-label", panelText("sheet"));
    closeButton.setAttribute("aria-label", panelText("back"));
  }

  chat.on("language", name);
  chat.on("renewed", () => sheet.close());
  return {
    /* `make` builds the section; a falsy value removes it. */
    put(key, make) {
      sections[key] = make;
      name();
      button.hidden = !Object.values(sections).some(Boolean);
    },
    close: () => sheet.close(),
  };
}

const cross = () => icon("M6 6l12 12M18 6L6 18");
const dots = () => icon("M5 12h.01M12 12h.01M19 12h.01");
