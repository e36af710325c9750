/* In which language does the widget itself speak? Whole sentences per language; the bot's words are its own. */

const en = {
  dir: "ltr", open: "Open chat", close: "Close chat", chat: "Chat with {title}", subtitle: "Usually answers at once", write: "Write a message", writeTo: "Write to {name}", send: "Send",
  conversation: "Conversation", suggestions: "Suggestions", latest: "Newest message", typing: "{title} is writing", said: "{name} said: {text}",
  connecting: "Connecting", offline: "You are offline. What you write is kept and sent when the line is back.",
  replaced: "This conversation is open in another window.", resume: "Continue here", refused: "This chat is not available at the moment.",
  unsent: "Not sent yet", tooLong: "This message is too long. Please send it in parts.", busy: "One moment: your message is sent again in {seconds} s.",
  windows: "This chat is open in too many windows. Close one of them; what was said is kept.",
  failed: "That did not work: {message}", person: "a colleague", joined: "{name} joined the conversation", left: "{title} answers again", answering: "{name} is answering you now",
  level: "{level} · {left}", minutes: "{n} min", seconds: "{n} s", expired: "For your safety you are no longer signed in here. Your questions are still welcome.",
  verified: "verified", levelHelp: "You are {level}. This ends in {left}.", levelOpen: "You are {level}.",
  work: "Your request", waiting: "needs a person", running: "in progress", done: "done", declined: "declined", stopped: "not done",
  waitingText: "Waiting for a colleague to confirm. You can keep chatting.", runningText: "Confirmed. We are on it.", doneText: "Done and checked.",
  declinedText: "A colleague declined this. Nothing was changed.", stoppedText: "This could not be completed. Nothing else was changed.",
  source: "Source", openSource: "Open the original", closeSource: "Back to the conversation", reading: "Opening the passage",
  noPassage: "This passage is not available to you any more.", noLine: "The passage could not be loaded. Please try again.",
};

const de = {
  dir: "ltr", open: "Chat öffnen", close: "Chat schließen", chat: "Chat mit {title}", subtitle: "Antwortet meist sofort", write: "Nachricht schreiben", writeTo: "An {name} schreiben", send: "Senden",
  conversation: "Gespräch", suggestions: "Vorschläge", latest: "Neueste Nachricht", typing: "{title} schreibt", said: "{name}: {text}",
  connecting: "Verbindung wird aufgebaut", offline: "Sie sind offline. Was Sie schreiben, bleibt erhalten und wird gesendet, sobald die Leitung wieder steht.",
  replaced: "Dieses Gespräch ist in einem anderen Fenster offen.", resume: "Hier fortsetzen", refused: "Dieser Chat ist gerade nicht verfügbar.",
  unsent: "Noch nicht gesendet", tooLong: "Diese Nachricht ist zu lang. Bitte senden Sie sie in Teilen.", busy: "Einen Moment: Ihre Nachricht wird in {seconds} s erneut gesendet.",
  windows: "Dieser Chat ist in zu vielen Fenstern offen. Schließen Sie eines; was gesagt wurde, bleibt erhalten.",
  failed: "Das hat nicht geklappt: {message}", person: "eine Kollegin oder ein Kollege", joined: "{name} ist dem Gespräch beigetreten", left: "{title} antwortet wieder", answering: "{name} antwortet Ihnen jetzt",
  level: "{level} · {left}", minutes: "{n} Min.", seconds: "{n} s", expired: "Zu Ihrer Sicherheit sind Sie hier nicht mehr angemeldet. Fragen können Sie weiterhin stellen.",
  verified: "bestätigt", levelHelp: "Sie sind {level}. Das endet in {left}.", levelOpen: "Sie sind {level}.",
  work: "Ihr Anliegen", waiting: "braucht einen Menschen", running: "in Arbeit", done: "erledigt", declined: "abgelehnt", stopped: "nicht erledigt",
  waitingText: "Wartet auf die Bestätigung durch unser Team. Sie können weiterschreiben.", runningText: "Bestätigt. Wir arbeiten daran.", doneText: "Erledigt und geprüft.",
  declinedText: "Unser Team hat dies abgelehnt. Es wurde nichts geändert.", stoppedText: "Das konnte nicht abgeschlossen werden. Sonst wurde nichts geändert.",
  source: "Quelle", openSource: "Original öffnen", closeSource: "Zurück zum Gespräch", reading: "Die Stelle wird geöffnet",
  noPassage: "Diese Stelle ist für Sie nicht mehr verfügbar.", noLine: "Die Stelle konnte nicht geladen werden. Bitte versuchen Sie es erneut.",
};

const LANGUAGES = { en, de };
let spoken = en;
let locale = "en";

/* Picks the nearest language we have; returns the locale dates and numbers are written in. */
export function speak(wanted) {
  const [language] = String(wanted || "").toLowerCase().split("-");
  spoken = LANGUAGES[language] || en;
  locale = canonical(LANGUAGES[language] ? wanted : "en");
  document.documentElement.lang = locale;
  document.documentElement.dir = spoken.dir;
}

function canonical(tag) {
  try {
    return Intl.getCanonicalLocales(tag)[0];
  } catch {
    return "en";
  }
}

export function dateLocale() {
  return locale;
}

export function word(name, values = {}) {
  return (spoken[name] ?? name).replace(/\{(\w+)\}/g, (all, field) => values[field] ?? all);
}

/* A word for a name the server gives (an access level, a state), or the name itself. */
export function named(name) {
  return spoken[name] ?? name;
}
