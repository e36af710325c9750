/* The live preview of a chatbot: the real frame beside the form, updated with unsaved settings by messages on the same origin. */

import { contrastBetween } from "./contrast.js";
import { offersIn } from "./studio_offers.js";
import { text as translated } from "./texts.js";

const HEX = /^#[0-9a-f]{6}$/i;
const LOOKS = ["accent", "mode", "position", "font", "launcher", "placement", "home"];

export function watchStudio() {
  const stand = document.querySelector("[data-preview]");
  if (!stand) return;
  const form = document.querySelector("[data-looks]");
  const speaks = document.querySelector("[data-speaks]");
  const frame = document.createElement("iframe");
  frame.title = translated("chat_preview");
  frame.src = `${stand.dataset.src}#${encodeURIComponent(location.origin)}`;
  const bubble = launcher();
  const tell = (silas, data = {}) => frame.contentWindow.postMessage({ silas, ...data }, location.origin);
  const shut = (closed) => {
    Object.assign(frame, { hidden: closed });
    bubble.hidden = !closed;
  };
  const show = () => form && dress(form, tell, bubble, speaks);
  addEventListener("message", ({ source, origin, data }) => {
    if (source !== frame.contentWindow || origin !== location.origin) return;
    if (data?.silas === "hello") {
      tell("init", { locale: speaks?.value || document.documentElement.lang });
      show();
      stand.dataset.ready = "yes";
    } else if (data?.silas === "look") {
      stand.dataset.side = data.side;
      bubble.style.setProperty("--chosen", data.colours?.accent ?? "");
      bubble.style.setProperty("--chosen-ink", data.colours?.ink ?? "");
      if (form) document.querySelector("[data-contrast]").textContent = judged(data.colours ?? {});
    } else if (data?.silas === "close" && stand.dataset.placement !== "inline") {
      shut(true);
      bubble.focus();
    }
  });
  bubble.addEventListener("click", () => {
    shut(false);
    frame.focus();
  });
  stand.append(frame, bubble);
  const renew = document.querySelector("[data-renew]");
  renew.hidden = false;
  renew.addEventListener("click", () => tell("renew"));
  speaks?.addEventListener("change", () => tell("locale", { locale: speaks.value }));
  form?.addEventListener("input", ({ target }) => {
    document.querySelector("[data-unsaved]").hidden = false;
    shut(target.name === "launcher");
    stand.dataset.placement = form.elements.placement.value;
    show();
  });
}

/* The preview of a proactive message says what is typed. */
export function watchNudge() {
  const text = document.querySelector("[data-nudge-text]");
  text?.addEventListener("input", () => { document.querySelector("[data-nudge]").textContent = text.value; });
}

/* The bubble as on a website, shown while its text is typed and while the chat is closed. */
function launcher() {
  const bubble = document.createElement("button");
  Object.assign(bubble, { type: "button", className: "bubble", hidden: true });
  const sign = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-7l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2Z");
  for (const [name, value] of [["viewBox", "0 0 24 24"], ["aria-hidden", "true"]]) sign.setAttribute(name, value);
  sign.append(path);
  bubble.append(sign, document.createElement("span"));
  return bubble;
}

function dress(form, tell, bubble, speaks) {
  const said = new FormData(form);
  const text = (name) => String(said.get(name) ?? "").trim();
  const theme = Object.fromEntries(LOOKS.map((name) => [name, text(name)]).filter(([, value]) => value));
  const suggestions = text("suggestions").split("\n").map((line) => line.trim()).filter(Boolean).slice(0, 6);
  const looks = { title: text("title") || translated("chat"), greeting: text("greeting"), suggestions, theme, languages: spoken(said) };
  tell("preview", { looks, offers: offersIn(form, text) });
  bubble.lastElementChild.textContent = theme.launcher ?? "";
  bubble.setAttribute("aria-label", theme.launcher ?? translated("open_chat"));
  for (const option of speaks.options) option.hidden = option.disabled = looks.languages.length > 0 && !looks.languages.includes(option.value);
}

/* The selected languages, with the default one first. */
function spoken(said) {
  const first = said.get("first_language");
  return said.getAll("languages").sort((one, other) => (other === first) - (one === first));
}

/* The text colour that the widget chose for the brand colour, and whether its links use another shade. */
function judged({ accent, ink, focus }) {
  if (![accent, ink, focus].every((colour) => HEX.test(colour ?? ""))) return "";
  const digits = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  const contrast = new Intl.NumberFormat(document.documentElement.lang, digits).format(contrastBetween(accent, ink));
  const chosen = translated(ink === "#ffffff" ? "white_on_colour" : "dark_on_colour", { contrast });
  return accent === focus ? chosen : `${chosen} ${translated("links_in_shade")}`;
}
