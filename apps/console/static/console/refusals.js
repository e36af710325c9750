/* What if a press was refused or did not arrive? A refusal of ours carries its own words; for anything else the page
   has them ready. */

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

/* A look that failed is tried again by itself; only what somebody pressed is worth a word. */
function wasPressed(event) {
  return event.detail.requestConfig.verb !== "get";
}

function say(words) {
  const notice = document.querySelector("#notice");
  notice.replaceChildren(document.querySelector(words).content.cloneNode(true));
  notice.focus();
}
