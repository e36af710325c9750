/* In which language does the widget itself speak? Whole sentences, one file a language; the bot's words are its own. */

import { ar } from "./words/ar.js";
import { de } from "./words/de.js";
import { en } from "./words/en.js";
import { es } from "./words/es.js";
import { fr } from "./words/fr.js";

const LANGUAGES = { en, de, fr, es, ar };
let allowed = Object.keys(LANGUAGES);
let spoken = en;
let locale = "en";

/* The deployment's own choice; the first is spoken where none is wanted. Whether it is another one than before. */
export function allow(languages) {
  const known = (Array.isArray(languages) ? languages : []).filter((one) => Object.hasOwn(LANGUAGES, one));
  const now = known.length ? known : Object.keys(LANGUAGES);
  const isOther = now.join() !== allowed.join();
  allowed = now;
  return isOther;
}

/* The first of the wanted locales whose language may be spoken; dates and numbers are written as there. */
export function speak(...wanted) {
  locale = wanted.map(canonical).find((tag) => allowed.includes(tag.split("-")[0])) || allowed[0];
  spoken = LANGUAGES[locale.split("-")[0]];
  document.documentElement.lang = locale;
  document.documentElement.dir = spoken.dir;
}

function canonical(tag) {
  try {
    return Intl.getCanonicalLocales(tag)[0] || "";
  } catch {
    return "";
  }
}

export function dateLocale() {
  return locale;
}

export function word(name, values = {}) {
  return filled(spoken[name] ?? name, values);
}

/* The form of a word that goes with a number, as the language has it. */
export function counted(name, n) {
  const form = spoken[name][new Intl.PluralRules(locale).select(n)] ?? spoken[name].other;
  return filled(form, { n: number(n) });
}

export function number(n) {
  return new Intl.NumberFormat(locale).format(n);
}

/* So many seconds, in the largest unit that fits. */
export function lasting(seconds) {
  const [value, unit] = seconds >= 60 ? [Math.ceil(seconds / 60), "minute"] : [seconds, "second"];
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short" }).format(value);
}

/* A word for a level's name, or the name itself. */
export function named(level) {
  return Object.hasOwn(spoken.levels, level) ? spoken.levels[level] : level;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}
