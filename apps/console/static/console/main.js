/* What does the console's page do by itself? Keeps up with what changed, listens to keys, keeps times fresh, guards the
   slide, finds what is asked for, and says when a press did not reach us. Without this file every page and form still works. */

import { watchAsking } from "./ask.js";
import { watchBatch } from "./batch.js";
import { watchCanned } from "./canned.js";
import { watchCompany } from "./company.js";
import { watchComposer } from "./composer.js";
import { watchCopies } from "./copy.js";
import { watchFit } from "./fit.js";
import { watchInbox } from "./inbox.js";
import { watchKeys } from "./keys.js";
import { askWithoutLine, forgetTheGone, listen } from "./live.js";
import { watchLog } from "./log.js";
import { watchPalette } from "./palette.js";
import { watchStepUps } from "./passkey.js";
import { watchPush } from "./push.js";
import { watchRefusals } from "./refusals.js";
import { watchSecrets } from "./secret.js";
import { watchSeveral } from "./several.js";
import { watchSlides } from "./slide.js";
import { watchStudio } from "./studio.js";
import { keepTimes } from "./times.js";
import { keepWorker } from "./worker.js";

watchRefusals();
watchKeys();
watchPalette();
watchSlides();
watchBatch();
watchFit();
watchSecrets();
watchCompany();
watchCopies();
watchStudio();
watchStepUps();
watchLog();
watchComposer();
watchCanned();
watchAsking();
watchInbox();
watchSeveral();
watchPush();
keepTimes();
forgetTheGone();
askWithoutLine();
listen();
keepWorker();
