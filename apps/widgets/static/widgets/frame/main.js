/* The widget's frame, put together: one line a part. A part that hears the same frame as another comes after it. */

import { wireCards } from "./cards.js";
import { Chat } from "./chat.js";
import { wireConsent } from "./consent.js";
import { wireConversations } from "./conversations.js";
import { begin, wireCourse } from "./course.js";
import { wireFiles } from "./files.js";
import { wireForm } from "./form.js";
import { wireHearing } from "./hearing.js";
import { wireLooks } from "./looks.js";
import { wirePassage } from "./passage.js";
import { wireRating } from "./rating.js";
import { wireReading } from "./reading.js";
import { wireSaying } from "./saying.js";
import { wireSheet } from "./sheet.js";
import { wireStanding } from "./standing.js";
import { wireTranscript } from "./transcript.js";
import { wireWorks } from "./works.js";

const chat = new Chat(decodeURIComponent(location.pathname.split("/")[3]));
wireCourse(chat);
wireStanding(chat);
wireLooks(chat);
wireHearing(chat);
wireReading(chat);
wireSaying(chat);
wireWorks(chat);
wireCards(chat);
wirePassage(chat);
wireConsent(chat);
wireForm(chat);
wireFiles(chat);
wireSheet(chat);
wireConversations(chat);
wireTranscript(chat);
wireRating(chat);
begin(chat);
