/* The widget's frame, put together: one line a part. A part that hears the same frame as another comes after it. */

import { wireCards } from "./cards.js";
import { Chat } from "./chat.js";
import { begin, wireCourse } from "./course.js";
import { wireHearing } from "./hearing.js";
import { wireLooks } from "./looks.js";
import { wirePassage } from "./passage.js";
import { wireReading } from "./reading.js";
import { wireSaying } from "./saying.js";
import { wireStanding } from "./standing.js";
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
begin(chat);
