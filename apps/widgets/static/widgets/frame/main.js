/* Puts the widget's frame together, one line per part. Of parts that handle the same frame, the order here is the order of
   their handlers. What a first message does not need is loaded when it is first used (tests/widgets/test_static.py bounds
   both). */

import { wireAppearance } from "./appearance.js";
import { Chat } from "./chat.js";
import { wireConsent } from "./consent.js";
import { t } from "./i18n.js";
import { late } from "./late.js";
import { start, wireLifecycle } from "./lifecycle.js";
import { wireReceiver } from "./receiver.js";
import { wireSendQueue } from "./sendQueue.js";
import { wireStatus } from "./status.js";
import { wireUnread } from "./unread.js";

const chat = new Chat(decodeURIComponent(location.pathname.split("/")[3]));
wireLifecycle(chat);
wireStatus(chat);
wireAppearance(chat);
wireReceiver(chat);
wireUnread(chat);
wireSendQueue(chat);
wireConsent(chat);

const cards = { frames: ["decision", "secure_input_request", "secure_input_completed"] };
late(chat, async () => (await import("./workCards.js")).wireWorkCards, { frames: ["status"] });
late(chat, async () => (await import("./cards.js")).wireCards, cards);
late(chat, async () => (await import("./files.js")).wireFiles, { frames: ["file"], isOffered: ({ files }) => files });
late(chat, async () => (await import("./conversations.js")).wireConversations, { isOffered: ({ conversations, articles }) => conversations || articles });
late(chat, async () => (await import("./transcript.js")).wireTranscript, { isOffered: ({ transcripts }) => transcripts });
late(chat, async () => (await import("./transcript.js")).wireElsewhere, { isOffered: (offers) => offers.email_answers || offers.continue_in?.length });
late(chat, async () => (await import("./rating.js")).wireRating, { isOffered: ({ rating }) => rating });
late(chat, async () => (await import("./proactive.js")).wireProactive, { isOffered: ({ proactive_messages: messages }) => messages?.length });

const form = late(chat, async () => (await import("./form.js")).wireForm, { isOffered: () => false });
chat.on("given", async ({ form_due: isDue }) => isDue && (await form())?.());

const passage = late(chat, async () => (await import("./passage.js")).wirePassage);
chat.on("cite", async (place) => {
  const open = await passage();
  if (open) open(...place);
  else chat.notice(t("noLine"));
});

start(chat);
