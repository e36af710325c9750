/* The page of a decision link: each form is sent with the passkey's answer to the options that it names, and the page that
   comes back takes its place. The server checks everything. */

import { ask, post } from "./passkey.js";
import { text } from "./texts.js";
import { keepTimes } from "./times.js";

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.options) return;
  event.preventDefault();
  send(event.target, event.submitter);
});
keepTimes();

async function send(form, button) {
  const said = form.querySelector("[data-said]"), buttons = form.querySelectorAll("button");
  const body = new FormData(form);
  if (button?.name) body.set(button.name, button.value);
  said.textContent = "";
  buttons.forEach((one) => { one.disabled = true; });
  try {
    const { options } = await post(form.dataset.options, body);
    body.set("assertion", await ask(options));
    show(await page(form.action, body));
  } catch (refusal) {
    said.textContent = refusal.message;
    buttons.forEach((one) => { one.disabled = false; });
  }
}

/* fetch, because a form of a page without a referrer is sent without its origin, which Django requires. */
async function page(address, body) {
  let response;
  try {
    response = await fetch(address, { method: "POST", body, credentials: "same-origin" });
  } catch {
    throw new Error(text("unreachable"));
  }
  const main = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("#main");
  if (!main) throw new Error(text("broken"));
  return main;
}

function show(main) {
  document.querySelector("#main").replaceWith(main);
  scrollTo(0, 0);
  main.focus();
}
