/* Is it you? Registers passkeys, and asks one before a grave yes. The server checks all of it. */

const B64 = { toBytes: (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)),
  toText: (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "") };

/* The JSON of the passkey's answer for this card, or "" where none is asked for. `face`: what the page showed of it; the
   passkey signs that and nothing else. Throws with words for people. */
export async function stepUp(cardId, face) {
  const body = new FormData();
  body.set("face", face);
  const { options } = await post(`/console/review/${cardId}/step-up/options/`, body);
  return options ? ask(options) : "";
}

/* What a passkey answers to these options, as JSON. Throws with words for people. */
export async function ask(options) {
  const publicKey = { ...options, challenge: B64.toBytes(options.challenge), allowCredentials: known(options.allowCredentials) };
  const found = await asked(() => navigator.credentials.get({ publicKey }));
  return answer(found, {
    authenticatorData: B64.toText(found.response.authenticatorData),
    signature: B64.toText(found.response.signature),
  });
}

/* Forms marked data-step-up="<card>" are sent with the passkey's answer, once the yes is pressed; so are plain forms
   marked data-step-up-at="<where the question is>". */
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

/* Meanwhile the page may have been drawn anew: the form that stands there now is sent. */
async function proveThere(form) {
  const action = form.getAttribute("action");
  try {
    const { options } = await post(form.dataset.stepUpAt, null);
    const said = options ? await ask(options) : "";
    const standing = form.isConnected ? form : document.querySelector(`form[action="${action}"]`);
    if (!standing) throw new Error("This was decided meanwhile.");
    standing.elements.step_up.value = said;
    standing.submit();
    standing.elements.step_up.value = "";
  } catch (refusal) {
    say(document.querySelector("#notice"), refusal.message);
  }
}

/* Recovery codes come with a person's first factor, and are shown this once: the page stays as it is. */
function showOnce(form, codes) {
  const list = form.querySelector("#passkey-codes");
  list.replaceChildren(...codes.map((code) => Object.assign(document.createElement("li"), { textContent: code })));
  list.hidden = false;
  form.querySelector("#passkey-said").textContent =
    "The passkey is added. These are your recovery codes; they are shown this once, and each lets you in once.";
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
  if (!navigator.credentials) throw new Error("This browser has no passkeys here. Open the console over https, or at localhost.");
  try {
    return await question();
  } catch {
    throw new Error("The passkey was not used. Nothing was changed; try again.");
  }
}

export async function post(address, body) {
  const headers = JSON.parse(document.body.getAttribute("hx-headers") ?? "{}");
  let response;
  try {
    response = await fetch(address, { method: "POST", body, headers, credentials: "same-origin" });
  } catch {
    throw new Error("That did not reach us. Nothing was changed; check the connection and try again.");
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.error?.message ?? "Something went wrong on our side. Nothing was changed.");
  return found;
}

function say(place, words) {
  const line = document.createElement("p");
  line.className = "notice bad";
  line.textContent = words;
  place.replaceChildren(line);
  place.focus();
}
