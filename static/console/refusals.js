/* Messages for failed requests: the server's own message for a refusal, prepared ones for everything else. */

export function watchRefusals() {
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.getResponseHeader("X-Console-Refusal")) Object.assign(event.detail, { shouldSwap: true, isError: false });
    else if (xhr.status < 400) document.querySelector("#notice").replaceChildren();
  });
  document.addEventListener("htmx:sendError", (event) => wasPressed(event) && say("#lost"));
  document.addEventListener("htmx:timeout", (event) => wasPressed(event) && say("#lost"));
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status !== 401) say("#broken");
  });
}

/* Failed refreshes are repeated automatically; only actions of the member show a message. */
function wasPressed(event) {
  return event.detail.requestConfig.verb !== "get";
}

function say(words) {
  const notice = document.querySelector("#notice");
  notice.replaceChildren(document.querySelector(words).content.cloneNode(true));
  notice.focus();
}
