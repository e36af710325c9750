/* Is it you, before anybody is logged in? Asks a passkey on the pages of the login. The server checks all of it, and
   without this file the password and the codes still work. */

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
