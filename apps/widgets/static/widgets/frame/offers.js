/* Loads which features the deployment offers (files, forms, ratings…) and makes requests with the conversation's token. */

import { asJson } from "./session.js";

const at = (chat, path) => `/api/v1/widget/${encodeURIComponent(chat.key)}/${path}`;

/* Resolves to the offers, loaded once per frame; a failed request is repeated the next time. */
export function loadOffers(chat, { reload = false } = {}) {
  if (reload) chat.offers = null;
  chat.offers ??= fetch(at(chat, "offers"), { credentials: "omit" }).then(asJson).catch((refusal) => {
    chat.offers = null;
    throw refusal;
  });
  return chat.offers;
}

function send(chat, path, { method = "GET", json, body } = {}, authorization = {}) {
  const headers = { ...authorization, ...(json ? { "Content-Type": "application/json" } : {}) };
  return fetch(at(chat, path), { method, credentials: "omit", headers, body: json ? JSON.stringify(json) : body });
}

/* Makes a request for this conversation, with `json` or form data as its body. Renews an expired token once. */
export async function request(chat, path, options, again = true) {
  const { token } = await chat.session.current();
  const response = await send(chat, path, options, { Authorization: `Bearer ${token}` });
  if (response.status !== 401 || !again) return response;
  chat.session.expire();
  return request(chat, path, options, false);
}

export async function requestJson(chat, path, options) {
  return asJson(await request(chat, path, options));
}

/* Makes a request of a visitor who has no conversation, and begins none. */
export async function requestBefore(chat, path, options) {
  return asJson(await send(chat, path, options));
}

export function newId() {
  return crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`;
}

/* Calls `fn` when the offers are known, and again when they change in the console's preview. */
export function onOffers(chat, fn) {
  const tell = () => loadOffers(chat).then(() => chat.offers).then(fn).catch(() => {});
  if (chat.offers) tell();
  else chat.on("begun", tell);
  chat.on("previewed", fn);
}
