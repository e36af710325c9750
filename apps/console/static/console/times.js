/* Keeps relative times up to date, and refreshes the page when a card has expired. */

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
  return seconds < 60 ? "now" : `${span(seconds)} ago`;
}

function ahead(seconds) {
  return seconds > 0 ? `in ${span(seconds)}` : "now";
}

function span(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

function expire() {
  const card = document.querySelector("[data-expires]");
  if (card && Date.parse(card.dataset.expires) <= Date.now()) htmx.trigger(document.body, "silas:cards");
}
