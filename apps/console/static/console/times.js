/* How long ago was that? Keeps the words of every <time data-relative> true, and looks again when a card has run out. */

const EVERY = 15000;

export function keepTimes() {
  setInterval(() => {
    document.querySelectorAll("time[data-relative=ago], time[data-relative=until]").forEach(refresh);
    expire();
  }, EVERY);
}

function refresh(time) {
  const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
  time.textContent = time.dataset.relative === "ago" ? past(seconds) : ahead(-seconds);
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
