/* Where does this answer come from? A sheet with the stored text around a citation, the quoted bytes marked. */

import { el } from "./dom.js";
import { link } from "./markdown.js";
import { asJson } from "./session.js";
import { word } from "./words.js";

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
    this.show({ title: citation.title, url: citation.url }, [el("p", { class: "quiet" }, word("reading"))]);
    this.sheet.showModal();
    try {
      const found = await this.load(citation);
      this.show(found, [...headed(found.before), el("mark", {}, found.quote), ...headed(found.after)]);
      this.text.querySelector("mark").scrollIntoView({ block: "center" });
    } catch (refusal) {
      this.show(citation, [el("p", { class: "quiet" }, word(refusal.final ? "noPassage" : "noLine"))]);
    }
  }

  show({ title, url }, content) {
    this.title.textContent = title || word("source");
    this.text.replaceChildren(...content);
    const href = link(url);
    this.origin.hidden = !href;
    if (href) this.origin.href = href;
    this.origin.textContent = word("openSource");
    this.sheet.querySelector("button").setAttribute("aria-label", word("closeSource"));
  }

  async load({ document_id, version_id, start, end }) {
    const { token } = await this.session.current();
    const range = new URLSearchParams({ start, end, ...(version_id ? { version: version_id } : {}) });
    const path = `/widget/v1/${encodeURIComponent(this.key)}/passage/${encodeURIComponent(document_id)}/?${range}`;
    return asJson(await fetch(path, { credentials: "omit", headers: { Authorization: `Bearer ${token}` } }));
  }
}

/* The stored text as it is, only that Markdown's headings stand out instead of showing their marks. */
function headed(text) {
  return text.split(/^(#{1,6} .*)$/m).map((part) => (/^#{1,6} /.test(part) ? el("b", {}, part.replace(/^#+ /, "")) : part));
}

export function wirePassage(chat) {
  const passage = new Passage(chat.key, chat.session);
  chat.when("cite", ([citation, opener]) => passage.open(citation, opener));
}
