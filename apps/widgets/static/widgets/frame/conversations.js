/* Which conversations has this browser had here? It keeps a resume token of each; without its own token none is opened. */

import { clock, el } from "./dom.js";
import { asked, whenOffered } from "./offers.js";
import { say } from "./words_beside.js";
import { dateLocale } from "./words.js";

const MOST = 30;

export function wireConversations(chat) {
  const { memory, session } = chat;
  let isOffered = false;

  const known = () => memory.get("conversations") || [];

  function keep(token) {
    if (isOffered && token) memory.set("conversations", [token, ...known().filter((each) => each !== token)].slice(0, MOST));
  }

  /* The page's own way to a new conversation forgets everything of this browser; here the others are kept, and what was
     agreed to. The next session is asked for only after this has returned. */
  function turnTo(token) {
    const kept = { conversations: known(), consent: memory.get("consent") };
    chat.sheet.close();
    chat.asked.renew();
    for (const [field, value] of Object.entries(kept)) if (value) memory.set(field, value);
    if (token) memory.set("resume", token);
  }

  function section() {
    const list = el("ul", { class: "talks" }, el("li", { class: "quiet" }, say("loading")));
    fill(list);
    return el("section", {}, el("h3", {}, say("conversations")),
      el("button", { type: "button", class: "choice", onclick: () => turnTo("") }, say("fresh")), list);
  }

  async function fill(list) {
    try {
      const now = await session.current();
      const tokens = known();
      const found = await asked(chat, "conversations", { method: "POST", json: { resume_tokens: tokens } });
      list.replaceChildren(...found.map((each) => el("li", {}, entry(each, tokens[each.place], now.id))));
      if (!found.length) list.replaceChildren(el("li", { class: "quiet" }, say("none")));
    } catch {
      list.replaceChildren(el("li", { class: "quiet" }, say("failed")));
    }
  }

  function entry({ session_id: id, preview, last_active_at: at }, token, here) {
    const line = [el("span", { class: "last" }, preview || "…"), el("time", { datetime: at, class: "quiet" }, clock(Date.parse(at), dateLocale()))];
    if (id === here) return el("div", { class: "talk", "aria-current": "true" }, ...line);
    return el("button", { type: "button", class: "talk", onclick: () => turnTo(token) }, ...line);
  }

  session.onGiven = ((before) => (given) => {
    before(given);
    keep(given.resume_token);
  })(session.onGiven);
  whenOffered(chat, ({ conversations }) => {
    isOffered = conversations;
    keep(memory.get("resume"));
    chat.sheet.put("conversations", conversations && section);
  });
}
