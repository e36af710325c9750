/* The message list: rows ordered by seq, followed by what is still in progress (a streamed answer, the typing indicator). */

import { el, parsed, time } from "./dom.js";
import { counted, dateLocale, t } from "./i18n.js";
import { markdown } from "./markdown.js";

const NEAR = 90;
const PAUSE = 30 * 60 * 1000;

export class Log {
  constructor(root, { onCite, onSay }) {
    this.box = root;
    this.rows = root.querySelector("[data-rows]");
    this.tail = root.querySelector("[data-tail]");
    this.announcer = document.querySelector("[data-announce]");
    this.latest = document.querySelector("[data-latest]");
    this.onCite = onCite;
    this.onSay = onSay;
    this.live = new Map();
    this.last = 0;
    this.stuck = true;
    this.top = 0;
    this.below = 0;
    this.readTo = 0;
    this.box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    const grown = new ResizeObserver(() => this.stuck && this.toEnd());
    [this.box, this.rows, this.tail].forEach((node) => grown.observe(node));
    this.latest.addEventListener("click", () => this.toEnd());
  }

  /* Places a row: by seq; pending rows last; rows without a record after the newest recorded one. */
  place(row, { seq, timestamp, pending = false } = {}) {
    const at = seq || (pending ? Infinity : this.last + 0.5);
    if (seq) this.last = Math.max(this.last, seq);
    row.dataset.seq = at;
    if (timestamp) row.dataset.at = timestamp;
    const next = [...this.rows.children].find((other) => other !== row && Number(other.dataset.seq) > at);
    if (row.parentNode !== this.rows || row.nextElementSibling !== (next ?? null)) this.rows.insertBefore(row, next ?? null);
    this.separate(row);
    if (this.readTo) this.markRead(this.readTo);
    this.arrived();
    return row;
  }

  /* Something new is at the end: a reader who is there sees it (the observer scrolls), any other is told. */
  arrived() {
    if (this.stuck) return;
    this.below += 1;
    this.nameLatest();
  }

  nameLatest() {
    this.latest.hidden = !this.below;
    this.latest.lastElementChild.textContent = counted("newBelow", this.below);
  }

  /* Whether a row is in the reader's sight, at least by its first lines. */
  isInSight(row) {
    if (this.stuck) this.toEnd();
    const [seen, box] = [row.getBoundingClientRect(), this.box.getBoundingClientRect()];
    return seen.top >= box.top && Math.min(seen.bottom, seen.top + 60) <= box.bottom;
  }

  /* Adds a date line where the conversation paused. */
  separate(row) {
    const before = row.previousElementSibling;
    const pause = before?.dataset.at && row.dataset.at && new Date(row.dataset.at) - new Date(before.dataset.at) > PAUSE;
    row.querySelector(":scope > .when")?.remove();
    if (pause) row.prepend(el("div", { class: "when" }, time(row.dataset.at, dateLocale())));
  }

  visitor(text, options = {}) {
    const row = this.place(el("div", { class: "row mine" }, el("p", { class: "you" }, text)), options);
    this.suggest([]);
    if (options.pending) this.toEnd();
    return row;
  }

  /* Marks a message that is not acknowledged yet. */
  mark(row, unsent) {
    row.querySelector(".unsent")?.remove();
    if (unsent) row.append(el("span", { class: "unsent" }, t("unsent")));
  }

  /* Says under the visitor's last message that the person who answers has read that they have. */
  markRead(upTo) {
    this.readTo = Math.max(this.readTo, upTo);
    const row = [...this.rows.querySelectorAll(".mine")].reverse().find((one) => Number(one.dataset.seq) <= this.readTo);
    if (row?.querySelector(".seen")) return;
    this.rows.querySelector(".seen")?.remove();
    row?.append(el("span", { class: "seen" }, t("seen")));
  }

  /* A message of the bot or an agent, with its citations as labels. */
  message({ text, html, sender, name, citations = [], suggestions = [], seq, timestamp, pending }) {
    const who = sender === "human" ? el("p", { class: "who" }, el("b", {}, name || t("person"))) : null;
    const row = el("div", { class: "row", title: timestamp ? new Date(timestamp).toLocaleString(dateLocale()) : null });
    row.append(el("div", { class: who ? "bot" : "bot faced" }, who, ...this.body(text, html, citations)));
    this.place(row, { seq, timestamp, pending });
    if (this.isLast(row)) this.suggest(suggestions);
    return row;
  }

  /* The server's HTML, or for a message without it the text rendered here. Sources that the text does not name are folded
     under it. */
  body(text, html, citations) {
    const used = new Set();
    const cite = (n) => {
      if (!citations[n - 1]) return null;
      used.add(n - 1);
      return this.cite(citations[n - 1]);
    };
    const nodes = html ? parsed(html) : markdown(text, cite);
    if (html) for (const place of nodes.flatMap((node) => [...node.querySelectorAll("[data-cite]")])) place.replaceWith(cite(Number(place.dataset.cite)) ?? place.textContent);
    const rest = citations.filter((_, index) => !used.has(index));
    if (!rest.length) return nodes;
    const labels = rest.flatMap((citation) => [" ", this.cite(citation)]);
    return [...nodes, el("details", { class: "sources" }, el("summary", {}, t("sources", { n: rest.length })), el("p", {}, ...labels))];
  }

  cite(citation) {
    const title = citation.title || t("source");
    const path = title.split(" › ");
    const label = path.length > 1 ? `${path[0]}, ${path.at(-1)}` : title;
    return el("button", { type: "button", class: "cite", "aria-label": `${t("source")}: ${label}`, title: title === label ? null : title, onclick: (event) => this.onCite(citation, event.currentTarget) }, label);
  }

  quiet(text, options) {
    return this.place(el("div", { class: "row note" }, text), options);
  }

  /* Appends a piece of a streamed answer. */
  delta({ turn, text }) {
    this.typing(false);
    let piece = this.live.get(turn);
    if (!piece) {
      piece = { text: "", row: el("div", { class: "row live", "aria-hidden": "true" }, el("div", { class: "bot faced" })) };
      this.live.set(turn, piece);
      this.tail.append(piece.row);
    }
    piece.text += text;
    piece.due ??= requestAnimationFrame(() => {
      piece.due = null;
      piece.row.firstChild.replaceChildren(...markdown(piece.text));
    });
  }

  endLive() {
    for (const { row, due } of this.live.values()) {
      cancelAnimationFrame(due);
      row.remove();
    }
    this.live.clear();
  }

  typing(on, title = "", isNamed = false) {
    this.tail.querySelector(".typing")?.remove();
    if (!on || this.live.size) return;
    const label = t("typing", { title });
    const words = isNamed ? el("span", {}, label) : null;
    this.tail.append(el("div", { class: isNamed ? "row typing" : "row typing faced", role: "img", "aria-label": label }, el("i"), el("i"), el("i"), words));
  }

  suggest(texts) {
    this.tail.querySelector(".suggest")?.remove();
    if (texts?.length) this.tail.append(this.chips(texts));
  }

  chips(texts) {
    const chips = texts.slice(0, 5).map((text) => el("button", { type: "button", class: "chip", onclick: () => this.onSay(text) }, text));
    return chips.length ? el("div", { class: "suggest", role: "group", "aria-label": t("suggestions") }, ...chips) : null;
  }

  announce(text) {
    this.announcer.textContent = "";
    setTimeout(() => { this.announcer.textContent = text; }, 50);
  }

  isLast(row) {
    return row === this.rows.lastElementChild;
  }

  /* Follows new rows until the reader scrolls up. A list that grew, or a window that shrank (a phone's keyboard), also leaves
     the end out of sight, but moves nothing up. */
  scrolled() {
    const { scrollTop: top, scrollHeight, clientHeight } = this.box;
    if (scrollHeight - top - clientHeight < NEAR) this.reached();
    else if (top < this.top) this.stuck = false;
    this.top = top;
  }

  toEnd() {
    this.reached();
    this.box.scrollTop = this.box.scrollHeight;
    this.top = this.box.scrollTop;
  }

  reached() {
    this.stuck = true;
    this.below = 0;
    this.latest.hidden = true;
  }

  clear() {
    this.endLive();
    this.last = this.readTo = 0;
    this.rows.replaceChildren();
    this.tail.replaceChildren();
  }
}
