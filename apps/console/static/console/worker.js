/* Is the console installed, and is there a page for no connection? The service worker behind both; a browser without one
   shows its own page. */

export function keepWorker() {
  navigator.serviceWorker?.register("/console/sw.js", { scope: "/console/" }).catch(() => {});
}
