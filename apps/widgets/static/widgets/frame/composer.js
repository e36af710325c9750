/* The message field: grows with its text; Enter sends, Shift+Enter breaks the line. */

/* The platform accepts 4000 characters, in a frame of 16 KiB. */
const LIMIT = 4000;
const LIMIT_BYTES = 16000;
const TYPING_EVERY = 3000;

export class Composer {
  constructor(form, { onSay, onTyping, onTooLong }) {
    this.form = form;
    this.field = form.querySelector("textarea");
    this.button = form.querySelector("button");
    Object.assign(this, { onSay, onTyping, onTooLong, typingSentAt: 0 });
    form.addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    this.changed();
  }

  submit() {
    const text = this.field.value.replaceAll("\0", "").trim();
    if (!text) return;
    if (text.length > LIMIT || new TextEncoder().encode(JSON.stringify(text)).length > LIMIT_BYTES) {
      this.onTooLong();
      return;
    }
    this.field.value = "";
    this.changed();
    this.onSay(text);
  }

  /* Begins a message that the visitor goes on writing; what they have begun themselves stays. */
  draft(text) {
    this.field.value ||= text;
    this.changed();
    this.focus();
  }

  changed() {
    this.field.rows = 1;
    const line = parseFloat(getComputedStyle(this.field).lineHeight) || 22;
    this.field.rows = Math.min(5, Math.max(1, Math.floor((this.field.scrollHeight - 12) / line)));
    this.button.disabled = !this.field.value.trim();
    if (this.button.disabled || Date.now() - this.typingSentAt < TYPING_EVERY) return;
    this.typingSentAt = Date.now();
    this.onTyping();
  }

  focus() {
    this.field.focus({ preventScroll: true });
  }
}
