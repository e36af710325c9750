/* Shows the access level, who answers and the state of the connection: chip, banner, status bar. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { capital } from "./presence.js";

export function wireStatus(chat) {
  const { host, log, presence, socket } = chat;

  function onOwner(frame) {
    const changed = presence.owned({ owner: frame.owner, name: frame.name || presence.name });
    if (!changed && !frame.seq) return;
    chat.emit("owner");
    const text = presence.owner === "human" ? t("joined", { name: capital(presence.name) }) : t("left", chat.appearance);
    log.quiet(text, frame);
    if (chat.isHistory(frame)) return;
    log.announce(text);
    host.emit("handoff", { owner: presence.owner });
  }

  function showSocketState({ state, detail }) {
    const text = { offline: t("offline"), replaced: t("replaced"), refused: t("refused") }[state];
    const again = state === "replaced" ? el("button", { type: "button", class: "chip", onclick: () => socket.open() }, t("resume")) : null;
    part("state").replaceChildren(...[text, again].filter(Boolean));
    part("state").hidden = !text;
    part("subtitle").textContent = t(state === "connecting" ? "connecting" : "subtitle");
    if (state === "refused") host.emit("error", { code: detail?.code || "refused" });
  }

  chat.onFrame("ready", ({ owner, name, access_level: level, expires_at }) => {
    presence.owned({ owner, name });
    presence.access({ level, expires_at });
    chat.emit("owner");
  });
  chat.onFrame("access", (frame) => presence.access(frame));
  chat.onFrame("owner", onOwner);
  chat.on("socket", showSocketState);
  chat.on("forgotten", () => presence.clear());
}
