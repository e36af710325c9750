/* Applies the deployment's appearance and language, and what the host page overrides. */

import { part } from "./chat.js";
import { allow, dateLocale, speak, t } from "./i18n.js";
import { Theme } from "./theme.js";

export function wireAppearance(chat) {
  const { host, log, session } = chat;
  const themeState = new Theme((look) => {
    if (chat.appearance.title) host.tell("look", { ...look, labels: { title: t("chat", chat.appearance), open: t("open") } });
  });

  function applyAppearance({ title, theme, greeting, suggestions, languages, logo, avatar }) {
    const before = chat.appearance;
    if (languages && allow(languages)) useLocale(requestedLocale);
    chat.appearance = { title: title || before.title, greeting: greeting ?? before.greeting, suggestions: suggestions ?? before.suggestions, hasHome: theme?.home !== "off" };
    part("title").textContent = chat.appearance.title;
    part("face").textContent = chat.appearance.title.charAt(0);
    showLogo(logo);
    showAvatar(avatar);
    document.title = t("chat", chat.appearance);
    themeState.fromDeployment(theme);
    showGreeting();
  }

  /* Shows the logo in place of the first letter; undefined keeps what is shown. The logo speaks the title. */
  function showLogo(picture) {
    const logo = part("logo");
    if (picture !== undefined) {
      logo.hidden = !picture;
      const height = Math.min(28, picture?.height ?? 0);
      if (picture) Object.assign(logo, { height, width: (picture.width * height) / picture.height, src: picture.address });
    }
    logo.alt = chat.appearance.title;
    part("face").hidden = !logo.hidden;
    part("title").setAttribute("aria-hidden", !logo.hidden);
  }

  part("logo").addEventListener("error", () => showLogo(null));

  /* Shows the avatar beside the chatbot's messages (frame.css); undefined keeps what is shown. */
  function showAvatar(picture) {
    if (picture === undefined) return;
    const root = document.documentElement;
    root.toggleAttribute("data-avatar", Boolean(picture));
    if (!picture) return;
    root.style.setProperty("--avatar", `url("${picture.address}")`);
    Object.assign(new Image(), { onerror: () => showAvatar(null), src: picture.address });
  }

  function showGreeting() {
    part("greeting").replaceChildren(chat.appearance.greeting);
    part("greeting").hidden = !chat.appearance.greeting;
    if (!log.rows.children.length) log.suggest(chat.appearance.suggestions);
  }

  let hostLanguage = "";
  let requestedLocale;

  /* Picks the first supported language of: the one requested, the host page's, the browser's. */
  function useLocale(locale) {
    requestedLocale = locale;
    chat.spoken = speak(locale, hostLanguage, ...(navigator.languages || [navigator.language])).then(nameParts);
    session.locale = dateLocale();
  }

  function nameParts() {
    part("log").setAttribute("aria-label", t("conversation"));
    part("close").setAttribute("aria-label", t("close"));
    log.nameLatest();
    chat.emit("language");
    themeState.paint();
  }

  /* Shows unsaved settings from the console's form. */
  function preview(looks, offers) {
    applyAppearance(looks);
    part("close").hidden = looks.theme.placement === "inline";
    chat.offers = Promise.resolve(offers);
    chat.previewed = offers;
    chat.emit("previewed", offers);
  }

  chat.onFrame("ready", ({ deployment }) => deployment && applyAppearance(deployment));
  chat.on("appearance", applyAppearance);
  chat.on("renewed", showGreeting);
  chat.on("locale", useLocale);
  chat.onHost("theme", ({ theme }) => themeState.fromPage(theme));
  chat.onHost("preview", ({ looks, offers }) => host.origin === location.origin && preview(looks, offers));
  chat.onHost("locale", ({ locale }) => useLocale(locale));
  chat.on("init", ({ font, lang, locale, theme }) => {
    hostLanguage = lang;
    useLocale(locale);
    themeState.fromPage({ ...(font ? { font } : {}), ...(theme instanceof Object ? theme : {}) });
  });
}
