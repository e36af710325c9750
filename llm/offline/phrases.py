"""The sentences that `builtin:grounded` says by itself. Later turns recognise some of them by their text.

Changing one changes how running conversations are understood: `FIRST_WHO`, `NOT_CONFIRMED` and `OFFER` are read back.
"""

from __future__ import annotations

HELLO = "Hello! How can I help you?"
THANKS = "You are welcome. Is there anything else I can do for you?"
GOODBYE = "Goodbye, and thank you for your visit."
FINE = "All right. Is there anything else I can do for you?"
CANCELLED = "All right, I have left everything as it was. Is there anything else I can do for you?"
SORRY_TO_HEAR = "I am very sorry about that."
FORM_RECEIVED = "Thank you, we have received your answers."
KNOWN_NOW = "Thank you. What can I do for you?"

PERSON = "Of course. I am asking a person from our team to take over. You can keep writing here meanwhile."
TALK_TO_PERSON = "Talk to a person"
OFFER = "Would you like me to ask a person from our team?"

FIRST_WHO = "Happy to help. First I need to verify your identity."
FILE_UNREAD = 'I am sorry, I cannot read "{name}".'
FILE_PROTECTED = 'I am sorry, I cannot read "{name}": it is protected by a password.'
UNKNOWN = "I am sorry, I do not know that: I found nothing about it in the documents I have."
NOT_UNDERSTOOD = "I am sorry, I did not understand that."
NOT_SURE_HOW = "I am sorry, I am not sure how I can help with that."
UNSURE = "I am not certain that this answers your question."
MAY_NOT_SAY = "I found something about this, but I may not repeat it here."
TOOL_FAILED = "I am sorry, I could not look that up just now, and I do not want to guess."
NOTHING_FOUND = "I looked, but found nothing for that."
ONCE_MORE = "Once more:"
BACK_TO = "Back to your request."
UNREADABLE = "I am sorry, I could not find that in your message."
NO_SUCH_TOOL = "I am sorry, that is nothing I can prepare here."

QUOTED = "I quote our documents as they were written."
SEVERAL = "I found more than one thing about this:"
WHICH = "Which of these do you mean?"
CAN_DO = "I can help with that."
THANK_YOU = "Thank you."
NOT_CONFIRMED = "I could not confirm who you are with that."
DECLINED = "A colleague declined this, and nothing was changed:"
NO_REASON = "No reason was given."
# The reason that the visitor was told, by its name.
DECLINED_BECAUSE = {
    "wrong_details": "Some of the details are not right. Please check them and ask again.",
    "missing_information": "Some information is missing. Please tell us more and ask again.",
    "not_verified": "We could not verify your identity. Please verify it and ask again.",
    "against_policy": "Our policy does not allow it. Our team can tell you what is possible.",
    "already_done": "It has already been requested or done.",
    "not_needed": "It is no longer needed. If you still need it, please ask again.",
}
PREPARED = "I have prepared this for you:"
AS_APPROVED = "Make the calls of the plan that are not done yet, as they were approved, and in their order."
WILL_TELL = "I will tell you here how it goes."


# What is said instead when the same would be said twice in a row.
_SECOND = {
    UNKNOWN: "I am sorry, that is not in my documents either.",
    NOT_UNDERSTOOD: "I am sorry, I still do not understand. Could you put it another way?",
    NOT_SURE_HOW: "I am sorry, that is nothing I can help with either.",
    UNREADABLE: "I still could not find that in your message, I am sorry.",
    MAY_NOT_SAY: "That is something else I may not repeat here.",
    TOOL_FAILED: "I still cannot look that up, I am sorry.",
    NOTHING_FOUND: "I found nothing for that either.",
    HELLO: "Hello again! What can I do for you?",
    THANKS: "With pleasure. Is there anything else?",
    GOODBYE: "Until next time.",
    SORRY_TO_HEAR: "I understand, and I am sorry.",
    FINE: "Good. What else can I do for you?",
    CANCELLED: "Nothing has been begun. Is there anything else I can do for you?",
    PERSON: "I have asked already; a colleague answers here as soon as one is free.",
}


def avoid_repetition(message: str, last: str) -> str:
    """`message`, in other words when it is word for word what was said last. What later turns read back stays in it."""
    if message != last:
        return message
    first = next((phrase for phrase in _SECOND if phrase in message), None)
    return f"{ONCE_MORE} {message}" if first is None else message.replace(first, _SECOND[first], 1)


def about_me(title: str) -> str:
    whose = f" of {title}" if title else ""
    return (
        f"I am the automated assistant{whose}, not a person. I answer from our documents and help with a few requests."
    )
