/* How do things stand? Level, who answers, and whether the line is there: the chip, the banner, the strip above the field. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { capital } from "./presence.js";
import { word } from "./words.js";

export function wireStanding(chat) {
  const { line, log, page, presence } = chat;

  function owned(frame) {
    const changed = presence.owned({ owner: frame.owner, name: frame.name || presence.name });
    if (!changed && !frame.seq) return;
    chat.happened("owner");
    const text = presence.owner === "human" ? word("joined", { name: capital(presence.name) }) : word("left", chat.looks);
    log.quiet(text, frame);
    if (chat.isOld(frame)) return;
    log.announce(text);
    page.emit("handoff", { owner: presence.owner });
  }

  function lineState({ state, detail }) {
    const text = { offline: word("offline"), replaced: word("replaced"), refused: word("refused") }[state];
    const again = state === "replaced" ? el("button", { type: "button", class: "chip", onclick: () => line.open() }, word("resume")) : null;
    part("state").replaceChildren(...[text, again].filter(Boolean));
    part("state").hidden = !text;
    part("subtitle").textContent = word(state === "connecting" ? "connecting" : "subtitle");
    if (state === "refused") page.emit("error", { code: detail?.code || "refused" });
  }

  chat.hears("ready", ({ owner, name, access_level: level, expires_at }) => {
    presence.owned({ owner, name });
    presence.access({ level, expires_at });
    chat.happened("owner");
  });
  chat.hears("access", (frame) => presence.access(frame));
  chat.hears("owner", owned);
  chat.when("line", lineState);
  chat.when("forgotten", () => presence.clear());
}
