/* Registers the service worker behind installation and the offline page. */

export const registered = () => navigator.serviceWorker.register("/console/sw.js", { scope: "/console/" });

export function keepWorker() {
  if (navigator.serviceWorker) registered().catch(() => {});
}
