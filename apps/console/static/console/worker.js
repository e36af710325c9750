/* Is the console installed, and is there a page for no connection? The service worker behind both; a browser without one
   shows its own page. */

export const registered = () => navigator.serviceWorker.register("/console/sw.js", { scope: "/console/" });

export function keepWorker() {
  if (navigator.serviceWorker) registered().catch(() => {});
}
