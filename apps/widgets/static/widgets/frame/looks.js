/* How does the chat look and in which language does it speak? The deployment's looks, and what the page said on top of them. */

import { part } from "./chat.js";
import { Theme } from "./theme.js";
import { allow, dateLocale, speak, word } from "./words.js";

export function wireLooks(chat) {
  const { log, page, session } = chat;
  const theming = new Theme((look) => {
    if (chat.looks.title) page.tell("look", { ...look, labels: { title: word("chat", chat.looks), open: word("open") } });
  });

  function wear({ title, theme, greeting, suggestions, languages }) {
    const { looks } = chat;
    if (languages && allow(languages)) useLocale(wanted);
    chat.looks = { title: title || looks.title, greeting: greeting ?? looks.greeting, suggestions: suggestions ?? looks.suggestions };
    part("title").textContent = chat.looks.title;
    part("face").textContent = chat.looks.title.charAt(0);
    document.title = word("chat", chat.looks);
    theming.fromDeployment(theme);
    greet();
  }

  function greet() {
    part("greeting").replaceChildren(chat.looks.greeting);
    part("greeting").hidden = !chat.looks.greeting;
    if (!log.rows.children.length) log.suggest(chat.looks.suggestions);
  }

  let ofPage = "";
  let wanted;

  /* What was said to us, what the page is written in, what the browser prefers; the first language we have. */
  function useLocale(locale) {
    wanted = locale;
    speak(locale, ofPage, ...(navigator.languages || [navigator.language]));
    session.locale = dateLocale();
    part("log").setAttribute("aria-label", word("conversation"));
    part("subtitle").textContent = word("subtitle");
    part("close").setAttribute("aria-label", word("close"));
    part("latest").setAttribute("aria-label", word("latest"));
    chat.happened("language");
    theming.paint();
  }

  /* What stands in the console's form, before it is saved. */
  function preview(looks, offers) {
    wear(looks);
    part("close").hidden = looks.theme.placement === "inline";
    chat.offers = Promise.resolve(offers);
    chat.happened("previewed", offers);
  }

  chat.hears("ready", ({ deployment }) => deployment && wear(deployment));
  chat.when("looks", wear);
  chat.when("renewed", greet);
  chat.when("locale", useLocale);
  chat.ask("theme", ({ theme }) => theming.fromPage(theme));
  chat.ask("preview", ({ looks, offers }) => page.origin === location.origin && preview(looks, offers));
  chat.ask("locale", ({ locale }) => useLocale(locale));
  chat.when("init", ({ font, lang, locale, theme }) => {
    ofPage = lang;
    useLocale(locale);
    theming.fromPage({ ...(font ? { font } : {}), ...(theme instanceof Object ? theme : {}) });
  });
}
