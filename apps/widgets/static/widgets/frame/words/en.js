/* The widget in English. */

export const en = {
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
