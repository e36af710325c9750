/* Starts or resumes the visitor's session and keeps its short-lived token fresh. */

const SPARE_SECONDS = 20;

export class Refused extends Error {
  constructor(status, { code = "unavailable", message = "", extra = {} } = {}) {
    super(message || code);
    this.code = code;
    this.extra = extra;
    this.retryAfter = Number(extra.retry_after) || 0;
    this.final = status >= 400 && status < 500 && status !== 429 && status !== 408;
  }
}

export async function asJson(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, body.error);
  return body;
}

export class Session {
  constructor(key, storage, ticket = "") {
    this.key = key;
    this.ticket = ticket;
    this.storage = storage;
    this.locale = "";
    this.identity = null;
    this.attributes = null;
    this.onIdentity = () => {};
    // Hooks: `before` runs before a session is requested and returns extra fields (consent.js); `onGiven` receives the
    // response (event "given"); `onRefused` may handle an error and return, after which the session is requested again.
    this.before = async () => ({});
    this.onGiven = () => {};
    this.onRefused = (refusal) => { throw refusal; };
    this.identities = 0;
    this.conversations = 0;
    this.now = null;
    this.asking = null;
  }

  get known() {
    return Boolean(this.storage.get("resume"));
  }

  /* The current {id, token, path}; requested from the server only if there is none or it is about to expire. */
  current() {
    if (this.now && Date.now() < this.now.until) return Promise.resolve(this.now);
    this.asking ??= this.ask().finally(() => { this.asking = null; });
    return this.asking;
  }

  /* Repeats the request if a new identity or a new conversation began meanwhile. */
  async ask() {
    for (;;) {
      const { identities, conversations } = this;
      const given = await this.request().catch((refusal) => this.onRefused(refusal));
      if (!given || conversations !== this.conversations) continue;
      this.storage.set("resume", given.resume_token);
      this.onGiven(given);
      if (identities !== this.identities) continue;
      if (given.identity) this.onIdentity(given.identity);
      const until = Date.now() + Math.max(1, given.expires_in - SPARE_SECONDS) * 1000;
      this.now = { id: given.session_id, token: given.token, path: given.ws_path, until };
      return this.now;
    }
  }

  async request() {
    const body = {
      ...(await this.before()),
      locale: this.locale || undefined,
      resume_token: this.storage.get("resume"),
      identity_token: this.identity || undefined,
      attributes: this.attributes || undefined,
      test_ticket: this.ticket || undefined,
    };
    const response = await fetch(`/api/v1/widget/${encodeURIComponent(this.key)}/sessions`, {
      method: "POST",
      credentials: "omit",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return asJson(response);
  }

  identify(identity) {
    this.identity = identity;
    this.identities += 1;
    this.expire();
  }

  /* Attributes go with the next session request; an existing session is requested again. */
  describe(attributes) {
    this.attributes = { ...this.attributes, ...attributes };
    if (!this.now) return;
    this.expire();
    this.current().catch(() => {});
  }

  /* The token is no longer good; the resume token still is. */
  expire() {
    this.now = null;
  }

  /* The next session is a new conversation. */
  forget() {
    this.conversations += 1;
    this.expire();
  }
}
