/* Puts the widget's frame together, one line per part. Of parts that handle the same frame, the order here is the order of
   their handlers. */

import { wireAppearance } from "./appearance.js";
import { wireCards } from "./cards.js";
import { Chat } from "./chat.js";
import { wireConsent } from "./consent.js";
import { wireConversations } from "./conversations.js";
import { wireFiles } from "./files.js";
import { wireForm } from "./form.js";
import { start, wireLifecycle } from "./lifecycle.js";
import { wirePassage } from "./passage.js";
import { wireRating } from "./rating.js";
import { wireReceiver } from "./receiver.js";
import { wireSendQueue } from "./sendQueue.js";
import { wireSheet } from "./sheet.js";
import { wireStatus } from "./status.js";
import { wireTranscript } from "./transcript.js";
import { wireUnread } from "./unread.js";
import { wireWorkCards } from "./workCards.js";

const chat = new Chat(decodeURIComponent(location.pathname.split("/")[3]));
wireLifecycle(chat);
wireStatus(chat);
wireAppearance(chat);
wireReceiver(chat);
wireUnread(chat);
wireSendQueue(chat);
wireWorkCards(chat);
wireCards(chat);
wirePassage(chat);
wireConsent(chat);
wireForm(chat);
wireFiles(chat);
wireSheet(chat);
wireConversations(chat);
wireTranscript(chat);
wireRating(chat);
start(chat);
