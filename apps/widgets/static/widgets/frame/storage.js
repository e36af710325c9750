/* What this browser stores for one deployment: resume tokens, unsent messages, what was read, proactive messages shown.
   If the browser blocks storage in this frame, the host page keeps the tokens and ids while its tab lives, so that the
   conversation continues across its pages; it never receives any message. */

const WITH_PAGE = ["resume", "read", "proactive"];

export class BrowserStorage {
  constructor(key, onKept) {
    this.name = `silas:${key}`;
    this.fields = {};
    this.onKept = onKept;
    this.blocked = false;
    this.attempt(() => { this.fields = JSON.parse(localStorage.getItem(this.name)) || {}; });
  }

  get(field) {
    return this.fields[field];
  }

  set(field, value) {
    this.fields[field] = value;
    this.keep(() => localStorage.setItem(this.name, JSON.stringify(this.fields)));
  }

  /* `proactive`: what was shown before is not shown again in a new conversation. */
  clear({ proactive } = {}) {
    this.fields = proactive ? { proactive } : {};
    this.keep(() => (proactive ? localStorage.setItem(this.name, JSON.stringify(this.fields)) : localStorage.removeItem(this.name)));
  }

  /* Takes what the host page kept, if storage is blocked here. */
  restore(kept) {
    if (!this.blocked || !(kept instanceof Object)) return;
    for (const field of WITH_PAGE) this.fields[field] ??= kept[field];
  }

  attempt(use) {
    try {
      use();
      this.blocked = false;
    } catch (error) {
      this.blocked = error.name !== "QuotaExceededError" && !(error instanceof SyntaxError);
    }
  }

  keep(write) {
    this.attempt(write);
    if (this.blocked) this.onKept(Object.fromEntries(WITH_PAGE.map((field) => [field, this.fields[field]])));
  }
}
