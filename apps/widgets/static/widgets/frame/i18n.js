/* The widget's own texts: whole sentences, one file per language, written by `make translations`. */

import { ar } from "./locales/ar.js";
import { de } from "./locales/de.js";
import { en } from "./locales/en.js";
import { es } from "./locales/es.js";
import { fr } from "./locales/fr.js";
import { nl } from "./locales/nl.js";

const LANGUAGES = { en, de, fr, es, nl, ar };
let allowed = Object.keys(LANGUAGES);
let texts = en;
let locale = "en";

/* Sets the deployment's languages, the first of which is the default; returns whether they changed. */
export function allow(languages) {
  const known = (Array.isArray(languages) ? languages : []).filter((one) => Object.hasOwn(LANGUAGES, one));
  const now = known.length ? known : Object.keys(LANGUAGES);
  const isOther = now.join() !== allowed.join();
  allowed = now;
  return isOther;
}

/* Uses the first locale whose language is allowed, also for dates and numbers. */
export function speak(...locales) {
  locale = locales.map(canonical).find((tag) => allowed.includes(tag.split("-")[0])) || allowed[0];
  texts = LANGUAGES[locale.split("-")[0]];
  document.documentElement.lang = locale;
  document.documentElement.dir = texts.dir;
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

export function t(name, values = {}) {
  return filled(texts[name] ?? name, values);
}

/* A text of the panels: consent, form, files, conversations, transcript, rating. */
export function panelText(name, values = {}) {
  return t(`panel_${name}`, values);
}

/* The plural form for a number. */
export function counted(name, n) {
  const form = texts[name][new Intl.PluralRules(locale).select(n)] ?? texts[name].other;
  return filled(form, { n: number(n) });
}

export function number(n) {
  return new Intl.NumberFormat(locale).format(n);
}

/* A duration in minutes, or in seconds below one minute. */
export function lasting(seconds) {
  const [value, unit] = seconds >= 60 ? [Math.ceil(seconds / 60), "minute"] : [seconds, "second"];
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short" }).format(value);
}

/* The label of an access level, or its name if there is none. */
export function named(level) {
  return Object.hasOwn(texts, `level_${level}`) ? texts[`level_${level}`] : level;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}
