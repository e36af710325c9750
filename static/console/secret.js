/* Sends a secret from its field directly to encrypted storage, never over the socket or with another form. Without this script
   its button stays disabled. */

import { text } from "./texts.js";

export function watchSecrets() {
  document.addEventListener("htmx:load", (event) => enable(event.detail.elt));
  enable(document);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-secret]");
    if (!button || button.dataset.stored) return;
    event.preventDefault();
    store(button);
  }, true);
}

function enable(part) {
  part.querySelectorAll("[data-secret]").forEach((button) => { button.disabled = false; });
}

async function store(button) {
  const field = document.querySelector("#secret");
  if (!field.value) {
    field.focus();
    return;
  }
  const headers = { ...JSON.parse(document.body.getAttribute("hx-headers")), "Content-Type": "application/json" };
  const body = JSON.stringify({ value: field.value });
  const address = `/secrets/${encodeURIComponent(button.dataset.secret)}`;
  const answer = await fetch(address, { method: "POST", headers, body, credentials: "same-origin" }).catch(() => null);
  if (!answer?.ok) {
    const said = await answer?.json().catch(() => null);
    const why = said?.error?.message ?? text("check_connection");
    say(text("secret_not_saved", { why }));
    return;
  }
  field.value = "";
  button.dataset.stored = "yes";
  button.click();
}

function say(words) {
  const line = document.createElement("p");
  line.className = "notice bad";
  line.textContent = words;
  const notice = document.querySelector("#notice");
  notice.replaceChildren(line);
  notice.focus();
}
