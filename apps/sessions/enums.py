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
