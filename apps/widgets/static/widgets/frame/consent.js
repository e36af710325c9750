/* Before a session is requested: the visitor's consent, once per version of the text. Nothing is sent or stored before. */

import { late } from "./late.js";
import { loadOffers } from "./offers.js";

export function wireConsent(chat) {
  const { session, storage } = chat;
  let isRefused = false;

  /* A returning visitor agreed in that conversation; the server refuses if it needs a newer version. */
  session.before = async () => {
    const { consent } = await loadOffers(chat, { reload: isRefused });
    if (!consent) return {};
    if (storage.get("consent") !== consent.version && (isRefused || !session.known)) {
      const { agreement } = await import("./agreement.js");
      await agreement(chat, consent);
    }
    isRefused = false;
    return storage.get("consent") === consent.version ? { consent: consent.version } : {};
  };

  session.onRefused = (refusal) => {
    if (refusal.code !== "consent_required") throw refusal;
    isRefused = true;
  };

  late(chat, async () => (await import("./agreement.js")).wireAgreement, { isOffered: () => false });
}
