/* Builds DOM nodes. Text is never parsed as HTML; `parsed` takes only what the server rendered and cleaned. */

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/* Nodes of HTML that the server rendered from a recorded message or an article (apps/sessions/markdown.py). */
export function parsed(html) {
  return [...new DOMParser().parseFromString(html, "text/html").body.children].map((node) => document.importNode(node, true));
}

export function icon(...paths) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.append(...paths.map((d) => {
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", d);
    return path;
  }));
  return svg;
}

/* The time of a moment, with the date if it is not today. */
export function clock(when, locale) {
  const today = new Date(when).toDateString() === new Date().toDateString();
  const style = today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  return new Intl.DateTimeFormat(locale, style).format(when);
}

export function time(iso, locale) {
  return el("time", { datetime: iso }, clock(Date.parse(iso), locale));
}
