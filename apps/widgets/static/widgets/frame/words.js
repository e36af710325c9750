/* In which language does the widget itself speak? Whole sentences per language; the bot's words are its own. */

import { de } from "./words/de.js";
import { en } from "./words/en.js";

const LANGUAGES = { en, de };
let spoken = en;
let locale = "en";

/* Picks the nearest language we have; returns the locale dates and numbers are written in. */
export function speak(wanted) {
  const [language] = String(wanted || "").toLowerCase().split("-");
  spoken = LANGUAGES[language] || en;
  locale = canonical(LANGUAGES[language] ? wanted : "en");
  document.documentElement.lang = locale;
  document.documentElement.dir = spoken.dir;
}

function canonical(tag) {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return "en";
  }
}

export function dateLocale() {
  return locale;
}

export function word(name, values = {}) {
  return (spoken[name] ?? name).replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}

/* A word for a name the server gives (an access level, a state), or the name itself. */
export function named(name) {
  return spoken[name] ?? name;
}
