/* What does the deployment offer beside talking, and how is it asked for? One look at the offers a frame; every other
   request bears the conversation's own token. */

import { asJson } from "./session.js";

const at = (chat, path) => `/api/v1/widget/${encodeURIComponent(chat.key)}/${path}`;

/* Resolves to the offers; a look that failed is taken again the next time. */
export function offered(chat, { anew = false } = {}) {
  if (anew) chat.offers = null;
  chat.offers ??= fetch(at(chat, "offers"), { credentials: "omit" }).then(asJson).catch((refusal) => {
    chat.offers = null;
    throw refusal;
  });
  return chat.offers;
}

/* A request of this conversation: `json` or a form as its body. A token that has just run out is asked for anew, once. */
export async function request(chat, path, { method = "GET", json, body } = {}, again = true) {
  const { token } = await chat.session.current();
  const headers = { Authorization: `Bearer ${token}`, ...(json ? { "Content-Type": "application/json" } : {}) };
  const response = await fetch(at(chat, path), { method, credentials: "omit", headers, body: json ? JSON.stringify(json) : body });
  if (response.status !== 401 || !again) return response;
  chat.session.expire();
  return request(chat, path, { method, json, body }, false);
}

export async function asked(chat, path, options) {
  return asJson(await request(chat, path, options));
}

export function newId() {
  return crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
}

/* Does something once the offers are known, and again whenever they are others in the console's preview. */
export function whenOffered(chat, fn) {
  chat.when("begun", () => offered(chat).then(() => chat.offers).then(fn).catch(() => {}));
  chat.when("previewed", fn);
}
