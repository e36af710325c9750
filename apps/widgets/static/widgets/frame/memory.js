/* What does this browser remember of one deployment? A resume token, unsent messages, what was read.
   Where it lets this frame remember nothing (other sites' frames), the page around keeps the token as long as its tab
   lives, so that the conversation goes on over its pages; what was said is never given to it. */

const WITH_PAGE = ["resume", "read"];

export class Memory {
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

  clear() {
    this.fields = {};
    this.keep(() => localStorage.removeItem(this.name));
  }

  /* What the page kept, where nothing is remembered here. */
  recall(kept) {
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
