/* Exchanges named messages with the host page: only with the parent window, at the origin that the loader named. The
   browser checks that origin against the deployment's allowed websites (frame-ancestors). */

export class Host {
  constructor(handlers) {
    this.alone = parent === window;
    this.origin = originOf(location.hash.slice(1));
    addEventListener("message", ({ source, origin, data }) => {
      if (this.alone || source !== parent || origin !== this.origin) return;
      if (data && Object.hasOwn(handlers, data.silas)) handlers[data.silas](data);
    });
  }

  tell(silas, data = {}) {
    if (!this.alone && this.origin) parent.postMessage({ silas, ...data }, this.origin);
  }

  /* Reports an event to the host page. Ids and counts only: the conversation's content stays in the frame. */
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
