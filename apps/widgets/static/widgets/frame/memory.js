/* What does this browser remember of one deployment? A resume token and unsent messages.
   Storage may be blocked by the browser; then it is remembered as long as the page lives. */

export class Memory {
  constructor(key) {
    this.name = `silas:${key}`;
    this.fields = {};
    try {
      this.fields = JSON.parse(localStorage.getItem(this.name)) || {};
    } catch {
      this.fields = {};
    }
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

  keep(write) {
    try {
      write();
    } catch {
      // Blocked or full: the conversation works, it only does not survive a reload.
    }
  }
}
