/* Logging in with a passkey. The server checks everything; without this file the password and codes still work. */

import { ask, post } from "./passkey.js";

for (const form of document.querySelectorAll("form[data-passkey-login]")) {
  form.hidden = !window.PublicKeyCredential;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    logIn(form);
  });
}

async function logIn(form) {
  const said = form.querySelector("[data-said]");
  said.textContent = "";
  try {
    const body = new FormData(form);
    body.set("step", form.dataset.passkeyLogin);
    const { options } = await post(form.action, body);
    body.set("credential", await ask(options));
    const { next } = await post(form.dataset.finish, body);
    location.assign(next);
  } catch (refusal) {
    said.textContent = refusal.message;
  }
}
