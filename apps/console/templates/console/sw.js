{% load static %}/* What does the browser do for the console without a page? It shows that there is no connection. Pages with somebody's
   data are never kept; only the page that says so is, with what it is drawn with. */

const KEPT = "silas-console-1";
const OFFLINE = "{% url 'console-offline' %}";
const DRAWN_WITH = ["{% static 'console/console.css' %}", "{% static 'console/inter-latin.woff2' %}", "{% static 'console/icon.svg' %}"];

self.addEventListener("install", (event) => {
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOlder());
});

/* Only whole pages, only when the network does not answer. Nothing else passes through here. */
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
