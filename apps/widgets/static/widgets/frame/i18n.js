/* The widget's own texts: whole sentences, one file per language, written by `make translations`. Only the language that is
   spoken is loaded. */

const LANGUAGES = {
  en: () => import("./locales/en.js"),
  de: () => import("./locales/de.js"),
  fr: () => import("./locales/fr.js"),
  es: () => import("./locales/es.js"),
  nl: () => import("./locales/nl.js"),
  ar: () => import("./locales/ar.js"),
};
let allowed = Object.keys(LANGUAGES);
let texts = {};
let locale = "en";

/* Sets the deployment's languages, the first of which is the default; returns whether they changed. */
export function allow(languages) {
  const known = (Array.isArray(languages) ? languages : []).filter((one) => Object.hasOwn(LANGUAGES, one));
  const now = known.length ? known : Object.keys(LANGUAGES);
  const isOther = now.join() !== allowed.join();
  allowed = now;
  return isOther;
}

/* Uses the first locale whose language is allowed, also for dates and numbers. Resolves when its texts are there. */
export async function speak(...locales) {
  const wanted = locales.map(canonical).find((tag) => allowed.includes(tag.split("-")[0])) || allowed[0];
  const language = wanted.split("-")[0];
  locale = wanted;
  const loaded = await LANGUAGES[language]();
  if (locale !== wanted) return;
  texts = loaded[language];
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

/* A moment within the next days by its weekday, a later one by its date, in the visitor's own time. */
export function moment(time) {
  const day = time - Date.now() < 6 * 864e5 ? { weekday: "long" } : { day: "numeric", month: "long" };
  return new Intl.DateTimeFormat(locale, { ...day, hour: "numeric", minute: "2-digit" }).format(time);
}

/* A duration in hours from two hours on, in minutes, or in seconds below one minute. In a sentence its unit is written out. */
export function lasting(seconds, unitDisplay = "long") {
  const [size, unit] = seconds >= 7200 ? [3600, "hour"] : seconds >= 60 ? [60, "minute"] : [1, "second"];
  const value = Math.ceil(seconds / size);
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay }).format(value);
}

/* The label of an access level, or its name if there is none. */
export function named(level) {
  return Object.hasOwn(texts, `level_${level}`) ? texts[`level_${level}`] : level;
}

function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}
