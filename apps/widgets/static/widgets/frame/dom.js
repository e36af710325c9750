/* How is a piece of the page made? By nodes only: no text from outside is ever parsed as HTML. */

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

export function time(iso, locale) {
  const when = new Date(iso);
  const today = when.toDateString() === new Date().toDateString();
  const style = today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  return el("time", { datetime: iso }, new Intl.DateTimeFormat(locale, style).format(when));
}
