/* Keeps relative times up to date, and refreshes the page when a card has expired. */

import { text } from "./texts.js";

const EVERY = 15000;

export function keepTimes() {
  setInterval(() => {
    document.querySelectorAll("time[data-relative=ago], time[data-relative=until], time[data-relative=for]").forEach(refresh);
    expire();
  }, EVERY);
}

function refresh(time) {
  const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
  time.textContent = { ago: past, until: (since) => ahead(-since), for: span }[time.dataset.relative](seconds);
}

function past(seconds) {
  return seconds < 60 ? text("now") : text("ago", { span: span(seconds) });
}

function ahead(seconds) {
  return seconds > 0 ? text("in", { span: span(seconds) }) : text("now");
}

function span(seconds) {
  if (seconds < 60) return text("seconds", { number: seconds });
  if (seconds < 3600) return text("minutes", { number: Math.floor(seconds / 60) });
  if (seconds < 172800) return text("hours", { number: Math.floor(seconds / 3600) });
  return text("days", { number: Math.floor(seconds / 86400) });
}

function expire() {
  const card = document.querySelector("[data-expires]");
  if (card && Date.parse(card.dataset.expires) <= Date.now()) htmx.trigger(document.body, "silas:cards");
}
