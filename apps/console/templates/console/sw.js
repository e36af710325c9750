/* What does the browser do for the console without a page? */

/* Alerts: a push holds a risk, a count and an address of the console, and no word of what a card is about. */
self.addEventListener("push", (event) => {
  event.waitUntil(tell(event.data ? event.data.json() : {}));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.url));
});

async function tell({ count = 1, risk = "", url = "/console/review/" }) {
  const title = count === 1 ? "A decision is waiting for you" : `${count} decisions are waiting for you`;
  await self.registration.showNotification(title, { body: risk ? `${risk} risk` : "", tag: url, data: { url } });
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
