/* Shows the access level, who answers and the state of the connection: chip, banner, status bar. */

import { part } from "./chat.js";
import { el } from "./dom.js";
import { moment, t } from "./i18n.js";
import { capital } from "./presence.js";

export function wireStatus(chat) {
  const { host, log, presence, socket } = chat;

  let connecting = false;
  let team = { open: true };

  /* What holds of the chatbot and of the team. The moment is in the visitor's own time; once it is past, the team is open. */
  function showSubtitle() {
    const back = Date.parse(team.opens_at);
    const isAway = !team.open && !(back <= Date.now());
    const time = back ? moment(back) : "";
    const said = isAway
      ? [presence.owner === "bot" && t("atOnce"), time ? t("teamBack", { time }) : t("teamAway")]
      : [presence.owner === "bot" && t("subtitle")];
    part("subtitle").textContent = connecting ? t("connecting") : said.filter(Boolean).join(" ");
  }

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
    connecting = state === "connecting";
    showSubtitle();
    if (state === "refused") host.emit("error", { code: detail?.code || "refused" });
  }

  chat.onFrame("ready", ({ owner, name, access_level: level, expires_at, team: theirs }) => {
    team = theirs || team;
    presence.owned({ owner, name });
    presence.access({ level, expires_at });
    chat.emit("owner");
  });
  chat.onFrame("access", (frame) => presence.access(frame));
  chat.onFrame("owner", onOwner);
  chat.on("socket", showSocketState);
  chat.on("appearance", (looks) => {
    team = looks.team || team;
    showSubtitle();
  });
  for (const event of ["owner", "language", "opened"]) chat.on(event, showSubtitle);
  chat.on("forgotten", () => presence.clear());
}
