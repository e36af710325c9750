/* Turns on push notifications in this browser; the service worker shows them. */

import { text } from "./texts.js";
import { registered } from "./worker.js";

export function watchPush() {
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "push-on") return;
    event.preventDefault();
    subscribe(event.target);
  });
}

async function subscribe(form) {
  const said = form.querySelector("#push-said");
  said.textContent = text("asking_browser");
  try {
    await send(form, await asked(form.dataset.key));
    window.htmx.ajax("GET", location.pathname, { target: "#main", select: "#main", swap: "outerHTML" });
  } catch (refusal) {
    said.textContent = refusal.message;
  }
}

async function asked(key) {
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) {
    throw new Error(text("no_push"));
  }
  try {
    const worker = await registered();
    const before = await worker.pushManager.getSubscription();
    if (before) await before.unsubscribe();
    return (await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })).toJSON();
  } catch {
    throw new Error(text("push_blocked"));
  }
}

async function send(form, { endpoint, keys }) {
  const body = new FormData(form);
  for (const [name, value] of Object.entries({ endpoint, p256dh: keys.p256dh, auth: keys.auth })) body.set(name, value);
  let response;
  try {
    response = await fetch(form.action, { method: "POST", body, credentials: "same-origin", headers: { Accept: "application/json" } });
  } catch {
    throw new Error(text("unreachable"));
  }
  if (response.ok) return;
  const found = await response.json().catch(() => ({}));
  throw new Error(found.error?.message ?? text("broken"));
}
