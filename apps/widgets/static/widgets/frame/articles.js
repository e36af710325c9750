/* Searches the company's articles on the home screen, and shows one in its place. Nothing of it goes into a conversation. */

import { el, parsed } from "./dom.js";
import { counted, panelText, t } from "./i18n.js";
import { link } from "./markdown.js";
import { requestBefore, requestJson } from "./offers.js";

const LONGEST = 200;

const problem = ({ code }) => panelText({ not_found: "articleGone", rate_limited: "often" }[code] || "failed");

/* Returns a function that builds the search. `ask` begins a conversation about the article of a title. */
export function articleSearch(chat, { home, ask }) {
  // A visitor who has no conversation, and no identity that would begin one, reads without it.
  const read = (path, options) => (chat.session.known || chat.session.identity ? requestJson : requestBefore)(chat, path, options);

  function build() {
    const input = el("input", { type: "search", id: "article-query", autocomplete: "off", enterkeyhint: "search", maxlength: LONGEST, dir: "auto" });
    const state = el("p", { class: "quiet", role: "status" });
    const list = el("ul", { class: "talks" });
    let searches = 0;

    async function search(event) {
      event.preventDefault();
      const query = input.value.trim();
      searches += 1;
      list.replaceChildren();
      state.textContent = "";
      if (!query) return;
      const now = searches;
      const [articles, said] = await read("articles/search", { method: "POST", json: { query } })
        .then((found) => [found.articles, found.articles.length ? counted("panel_articlesFound", found.articles.length) : panelText("noArticles")])
        .catch((refusal) => [[], problem(refusal)]);
      if (now !== searches) return;
      list.replaceChildren(...articles.map((article) => el("li", {}, result(article, state))));
      state.textContent = said;
    }

    return el("form", { class: "field articles", role: "search", onsubmit: search },
      el("label", { for: input.id }, panelText("searchArticles")),
      el("div", { class: "pressed" }, input, el("button", { class: "choice" }, panelText("search"))), state, list);
  }

  function result({ document_id: id, title, sentence }, state) {
    return el("button", { type: "button", class: "talk article", onclick: (event) => open(id, event.currentTarget, state) },
      el("b", { dir: "auto" }, title), el("span", { class: "quiet", dir: "auto" }, sentence));
  }

  async function open(id, opener, state) {
    try {
      show(await read(`articles/${id}`), opener);
    } catch (refusal) {
      state.textContent = problem(refusal);
    }
  }

  function show({ title, url, html, is_whole: isWhole }, opener) {
    const front = [...home.children];
    const heading = el("h2", { dir: "auto", tabindex: "-1" }, title);
    const href = link(url);

    function goBack() {
      home.replaceChildren(...front);
      opener.focus();
    }

    home.replaceChildren(
      el("button", { type: "button", class: "choice back", onclick: goBack }, panelText("toHome")), heading,
      el("div", { class: "bot whole", dir: "auto" }, ...parsed(html)),
      ...[!isWhole && el("p", { class: "quiet" }, panelText("articleCut")), href && el("a", { href, target: "_blank", rel: "noopener noreferrer" }, t("openSource"))].filter(Boolean),
      el("button", { type: "button", class: "choice first", onclick: () => ask(title) }, panelText("askAbout")));
    home.scrollTop = 0;
    heading.focus();
  }

  return build;
}
