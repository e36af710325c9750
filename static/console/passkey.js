/* Passkeys: registering them, and confirming risky approvals with them. The server checks everything. */

import { text } from "./texts.js";

const B64 = { toBytes: (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)),
  toText: (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "") };

/* Return the passkey's answer for this card as JSON, or "" where none is needed. The passkey signs the card as shown (`face`).
   Throws with a message to show. */
export async function stepUp(cardId, face) {
  const body = new FormData();
  body.set("face", face);
  const { options } = await post(`/console/review/${cardId}/step-up/options/`, body);
  return options ? ask(options) : "";
}

/* Return a passkey's answer to these options as JSON. Throws with a message to show. */
export async function ask(options) {
  const publicKey = { ...options, challenge: B64.toBytes(options.challenge), allowCredentials: known(options.allowCredentials) };
  const found = await asked(() => navigator.credentials.get({ publicKey }));
  return answer(found, {
    authenticatorData: B64.toText(found.response.authenticatorData),
    signature: B64.toText(found.response.signature),
  });
}

/* Forms with data-step-up="<card>" are sent with the passkey's answer when Approve is clicked; so are plain forms with
   data-step-up-at="<address of the options>". */
export function watchStepUps() {
  document.addEventListener("htmx:confirm", (event) => {
    const form = event.target.closest?.("form[data-step-up]");
    if (!form || !event.detail.triggeringEvent?.submitter?.matches("[data-approve]") || form.elements.step_up.value) return;
    event.preventDefault();
    prove(form, event.detail.triggeringEvent.submitter);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.stepUpAt) return;
    event.preventDefault();
    proveThere(event.target);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "add-passkey") return;
    event.preventDefault();
    register(event.target);
  });
}

async function prove(form, button) {
  try {
    form.elements.step_up.value = await stepUp(form.dataset.stepUp, form.elements.face.value);
    form.requestSubmit(button);
  } catch (refusal) {
    say(document.querySelector("#notice"), refusal.message);
  }
}

/* The page may have been refreshed meanwhile: send the form that is there now. */
async function proveThere(form) {
  const action = form.getAttribute("action");
  try {
    const { options } = await post(form.dataset.stepUpAt, null);
    const said = options ? await ask(options) : "";
    const current = form.isConnected ? form : document.querySelector(`form[action="${action}"]`);
    if (!current) throw new Error(text("decided"));
    current.elements.step_up.value = said;
    current.submit();
    current.elements.step_up.value = "";
  } catch (refusal) {
    say(document.querySelector("#notice"), refusal.message);
  }
}

/* Recovery codes come with the first factor and are shown only once: don't reload the page. */
function showOnce(form, codes) {
  const list = form.querySelector("#passkey-codes");
  list.replaceChildren(...codes.map((code) => Object.assign(document.createElement("li"), { textContent: code })));
  list.hidden = false;
  form.querySelector("#passkey-said").textContent = text("passkey_added");
  form.reset();
}

async function register(form) {
  const said = form.querySelector("#passkey-said");
  try {
    const { options } = await post(form.action, new FormData(form));
    const publicKey = {
      ...options,
      challenge: B64.toBytes(options.challenge),
      user: { ...options.user, id: B64.toBytes(options.user.id) },
      excludeCredentials: known(options.excludeCredentials),
    };
    const made = await asked(() => navigator.credentials.create({ publicKey }));
    const body = new FormData();
    body.set("name", form.elements.name.value);
    body.set("credential", answer(made, { attestationObject: B64.toText(made.response.attestationObject) }));
    const { codes = [] } = await post(form.dataset.finish, body);
    if (codes.length) return showOnce(form, codes);
    window.htmx.ajax("GET", location.pathname, { target: "#main", select: "#main", swap: "outerHTML" });
  } catch (refusal) {
    said.textContent = refusal.message;
  }
}

function answer(found, response) {
  const clientDataJSON = B64.toText(found.response.clientDataJSON);
  return JSON.stringify({ id: found.id, rawId: B64.toText(found.rawId), type: found.type, response: { clientDataJSON, ...response } });
}

function known(credentials = []) {
  return credentials.map((one) => ({ ...one, id: B64.toBytes(one.id) }));
}

async function asked(question) {
  if (!navigator.credentials) throw new Error(text("no_passkeys"));
  try {
    return await question();
  } catch {
    throw new Error(text("passkey_unused"));
  }
}

export async function post(address, body) {
  const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
  let response;
  try {
    response = await fetch(address, { method: "POST", body, headers, credentials: "same-origin" });
  } catch {
    throw new Error(text("unreachable"));
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.error?.message ?? text("broken"));
  return found;
}

function say(place, words) {
  const line = document.createElement("p");
  line.className = "notice bad";
  line.textContent = words;
  place.replaceChildren(line);
  place.focus();
}
