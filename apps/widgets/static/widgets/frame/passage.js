/* A sheet with the stored text around a citation, with the quote marked. */

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { link } from "./markdown.js";
import { asJson } from "./session.js";

export class Passage {
  constructor(key, session) {
    this.key = key;
    this.session = session;
    this.sheet = document.querySelector("[data-passage]");
    this.title = this.sheet.querySelector("h2");
    this.text = this.sheet.querySelector("[data-text]");
    this.origin = this.sheet.querySelector("[data-origin]");
    this.sheet.querySelector("button").addEventListener("click", () => this.sheet.close());
    this.sheet.addEventListener("click", (event) => event.target === this.sheet && this.sheet.close());
    this.sheet.addEventListener("close", () => this.opener?.focus());
  }

  async open(citation, opener) {
    this.opener = opener;
    if (citation.is_file) {
      this.show(citation, [el("mark", {}, citation.quote)]);
      this.sheet.showModal();
      return;
    }
    this.show({ title: citation.title, url: citation.url }, [el("p", { class: "quiet" }, t("reading"))]);
    this.sheet.showModal();
    try {
      const passage = await this.load(citation);
      this.show(passage, [...headed(passage.before), el("mark", {}, passage.quote), ...headed(passage.after)]);
      this.text.querySelector("mark").scrollIntoView({ block: "center" });
    } catch (refusal) {
      this.show(citation, [el("p", { class: "quiet" }, t(refusal.final ? "noPassage" : "noLine"))]);
    }
  }

  show({ title, url }, content) {
    this.title.textContent = title || t("source");
    this.text.replaceChildren(...content);
    const href = link(url);
    this.origin.hidden = !href;
    if (href) this.origin.href = href;
    this.origin.textContent = t("openSource");
    this.sheet.querySelector("button").setAttribute("aria-label", t("closeSource"));
  }

  async load({ document_id, version_id, start, end }) {
    const { token } = await this.session.current();
    const range = new URLSearchParams({ start, end, ...(version_id ? { version: version_id } : {}) });
    const path = `/widget/v1/${encodeURIComponent(this.key)}/passage/${encodeURIComponent(document_id)}/?${range}`;
    return asJson(await fetch(path, { credentials: "omit", headers: { Authorization: `Bearer ${token}` } }));
  }
}

/* The stored text as it is, with Markdown headings in bold. */
function headed(text) {
  return text.split(/^(#{1,6} .*)$/m).map((part) => (/^#{1,6} /.test(part) ? el("b", {}, part.replace(/^#+ /, "")) : part));
}

/* Returns the function that opens it. */
export function wirePassage(chat) {
  const passage = new Passage(chat.key, chat.session);
  return (citation, opener) => passage.open(citation, opener);
}
