"""States of a conversation, its turns and its entries."""

from django.db.models import TextChoices


class Owner(TextChoices):
    """Who answers in a conversation."""

    BOT = "bot", "Bot"
    HUMAN = "human", "Person"


class EntryKind(TextChoices):
    """What a recorded frame is; each kind is a frame type of the socket protocol (contract interfaces)."""

    MESSAGE = "message", "Message"
    STATUS = "status", "Progress of work"
    ACCESS = "access", "Access level"
    OWNER = "owner", "Who answers"
    DECISION = "decision", "Question to the visitor, and its answer"
    SECURE_INPUT = "secure_input_request", "A secret was asked for"
    SECURE_STORED = "secure_input_completed", "What became of that"
    FILE = "file", "File"


class Sender(TextChoices):
    VISITOR = "visitor", "Visitor"
    BOT = "bot", "Bot"
    HUMAN = "human", "Person"
    SYSTEM = "system", "System"


class TurnStatus(TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"
    PAUSED = "paused", "Waits for a person"


class AskKind(TextChoices):
    """What a visitor can be asked to press, to give or to fill in (spec 8.1)."""

    DECISION = "decision", "Question"
    SECURE_INPUT = "secure_input", "Secret needed"
    FORM = "form", "Form"


class AskStatus(TextChoices):
    """Open until one of the others; whose time is up stays open and can no longer be answered."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


class QuestionKind(TextChoices):
    """What the form before the first word may ask."""

    NAME = "name", "Name"
    EMAIL = "email", "E-mail address"
    TEXT = "text", "Text"
    CHOICE = "choice", "Choice"


class FieldKind(TextChoices):
    """What a field of a form takes that a visitor is asked to fill in."""

    TEXT = "text", "Text"
    EMAIL = "email", "E-mail address"
    NUMBER = "number", "Number"
    CHOICE = "choice", "Choice"
    DATE = "date", "Date"


class RatingScale(TextChoices):
    """With what a visitor says how it was."""

    STARS = "stars", "One to five stars"
    THUMBS = "thumbs", "Thumb up or down"


class TranscriptState(TextChoices):
    OWED = "owed", "Waits to be sent"
    SENT = "sent", "Sent"
    GIVEN_UP = "given_up", "Could not be sent"
