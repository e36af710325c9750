/* What does the console's page do by itself? Keeps up with what changed, listens to keys, keeps times fresh, guards the
   slide, and says when a press did not reach us. Without this file every page and form still works. */

import { watchCompany } from "./company.js";
import { forgetTheGone, listen } from "./live.js";
import { watchKeys } from "./keys.js";
import { watchLog } from "./log.js";
import { watchStepUps } from "./passkey.js";
import { watchPush } from "./push.js";
import { watchRefusals } from "./refusals.js";
import { watchSecrets } from "./secret.js";
import { watchSlides } from "./slide.js";
import { keepTimes } from "./times.js";

watchRefusals();
watchKeys();
watchSlides();
watchSecrets();
watchCompany();
watchStepUps();
watchLog();
watchPush();
keepTimes();
forgetTheGone();
listen();
