/* What passes between this frame and the page around it? Named messages, from the one parent window, at the one origin the
   loader named; the browser itself holds that origin to the deployment's list (frame-ancestors). */

export class Page {
  constructor(heard) {
    this.alone = parent === window;
    this.origin = originOf(location.hash.slice(1));
    addEventListener("message", ({ source, origin, data }) => {
      if (this.alone || source !== parent || origin !== this.origin) return;
      if (data && Object.hasOwn(heard, data.silas)) heard[data.silas](data);
    });
  }

  tell(silas, data = {}) {
    if (!this.alone && this.origin) parent.postMessage({ silas, ...data }, this.origin);
  }

  /* An event the page may listen to. Ids and counts only: what is said in the chat stays in the chat. */
  emit(event, detail = {}) {
    this.tell("event", { event, detail });
  }
}

function originOf(text) {
  try {
    const { origin } = new URL(decodeURIComponent(text));
    return origin === "null" ? "" : origin;
  } catch {
    return "";
  }
}
