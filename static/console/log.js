/* The conversation log: it stays at the newest line unless the member has scrolled up. A draft stays when the log is
   refreshed, unless the conversation has changed hands. */

let wasAtEnd = true;
let frame = null;

export function watchLog() {
  toEnd();
  document.addEventListener("htmx:beforeSwap", () => {
    const log = document.querySelector("[data-log]");
    wasAtEnd = !log || log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  });
  document.addEventListener("htmx:afterSettle", () => {
    // A refresh settles part by part: the log is moved once.
    if (wasAtEnd) frame ??= requestAnimationFrame(toEnd);
  });
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    if (target.id === "answering" && fragment.querySelector("#answering")?.dataset.epoch === target.dataset.epoch) {
      event.detail.shouldSwap = false;
    }
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && event.target.matches("[data-composer]")) sent(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !event.target.matches("[data-composer] textarea")) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  });
}

function toEnd() {
  frame = null;
  const log = document.querySelector("[data-log]");
  if (log) log.scrollTop = log.scrollHeight;
}

function sent(form) {
  form.reset();
  form.querySelector("textarea").focus();
}
