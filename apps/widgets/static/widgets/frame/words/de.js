/* The widget in German. */

export const de = {
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
