{% load i18n static %}/* The service worker of the console: the offline page, and notifications about waiting decisions and agents. Pages with data are never cached, only the offline
   page and its assets. */

const KEPT = "silas-console-1";
const OFFLINE = "{% url 'console-offline' %}";
const DRAWN_WITH = ["{% static 'console/console.css' %}", "{% static 'console/inter-latin.woff2' %}", "{% static 'console/icon.svg' %}"];
const TITLES = {
  decision: { one: "{% translate "A decision is waiting for you" as text %}{{ text|escapejs }}", several: "{% translate "{count} decisions are waiting for you" as text %}{{ text|escapejs }}" },
  agent: { one: "{% translate "An agent is waiting for you" as text %}{{ text|escapejs }}", several: "{% translate "{count} agents are waiting for you" as text %}{{ text|escapejs }}" },
};
const RISKS = {
  low: "{% translate "low risk" as text %}{{ text|escapejs }}",
  medium: "{% translate "medium risk" as text %}{{ text|escapejs }}",
  high: "{% translate "high risk" as text %}{{ text|escapejs }}",
  irreversible: "{% translate "irreversible risk" as text %}{{ text|escapejs }}",
};
const SINCE = "{% translate "since {time}" as text %}{{ text|escapejs }}";

self.addEventListener("install", (event) => {
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOlder());
});

/* Answer whole pages only, and only when the network fails. */
self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") event.respondWith(fetch(event.request).catch(offline));
  else if (DRAWN_WITH.includes(new URL(event.request.url).pathname)) event.respondWith(fetch(event.request).catch(() => kept(event.request)));
});

async function keep() {
  const cache = await caches.open(KEPT);
  await cache.addAll([OFFLINE, ...DRAWN_WITH].map((address) => new Request(address, { cache: "reload", credentials: "omit" })));
}

async function forgetOlder() {
  for (const name of await caches.keys()) {
    if (name.startsWith("silas-console-") && name !== KEPT) await caches.delete(name);
  }
}

async function offline() {
  return (await caches.match(OFFLINE)) ?? Response.error();
}

async function kept(request) {
  return (await caches.match(request)) ?? Response.error();
}

/* Alerts: a push holds a risk, a count, an address of the console and a time, and nothing about the content of a card or an agent's action. */
self.addEventListener("push", (event) => {
  event.waitUntil(tell(event.data ? event.data.json() : {}));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.url));
});

async function tell({ about = "decision", count = 1, risk = "", url = "/console/review/", since = 0 }) {
  const titles = about === "agent" ? TITLES.agent : TITLES.decision;
  const title = (count === 1 ? titles.one : titles.several).replace("{count}", count);
  const time = SINCE.replace("{time}", new Date(since * 1000).toLocaleString());
  const body = [RISKS[risk] ?? "", risk && since ? time : ""].filter(Boolean).join(", ");
  await self.registration.showNotification(title, { body, tag: url, data: { url } });
}

async function open(address) {
  const url = new URL(address, self.location.origin);
  if (url.origin !== self.location.origin || !url.pathname.startsWith("/console/")) return;
  for (const page of await self.clients.matchAll({ type: "window" })) {
    if (new URL(page.url).pathname === url.pathname) {
      await page.focus();
      return;
    }
  }
  await self.clients.openWindow(url.href);
}
/* End of alerts. */
