/* Parts that are loaded when they are first needed: with the first frame of their types, when they are offered, or when
   called for. Each is wired once; frames wait for their part, in order. */

import { onOffers } from "./offers.js";

/* Returns a function that resolves to what the part's `wire…(chat)` returned, or to nothing if it could not be loaded. In
   the console's preview every offered part is loaded at once, so that it can be switched on there. */
export function late(chat, load, { frames = [], isOffered = null } = {}) {
  const held = [];
  let wired = null;

  function need() {
    wired ??= load().then(wire, () => { wired = null; });
    return wired;
  }

  function wire(part) {
    for (const type of frames) chat.frameHandlers[type] = chat.frameHandlers[type].filter((fn) => fn !== hold);
    const given = part(chat);
    held.splice(0).forEach((frame) => chat.handle(frame));
    return given;
  }

  function hold(frame) {
    held.push(frame);
    need();
  }

  frames.forEach((type) => chat.onFrame(type, hold));
  chat.onFrame("ready", () => held.length && need());
  chat.on("forgotten", () => held.splice(0));
  if (isOffered) onOffers(chat, (offers) => (chat.session.ticket || isOffered(offers)) && need());
  return need;
}
