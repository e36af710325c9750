"""States of a conversation, its turns and its entries."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Owner(TextChoices):
    """Who answers in a conversation."""

    BOT = "bot", _("Bot")
    HUMAN = "human", _("Person")


class EntryKind(TextChoices):
    """What a recorded frame is; each kind is a frame type of the socket protocol (contract interfaces)."""

    MESSAGE = "message", _("Message")
    STATUS = "status", _("Progress of work")
    ACCESS = "access", _("Access level")
    OWNER = "owner", _("Who answers")
    DECISION = "decision", _("Question to the visitor and its answer")
    SECURE_INPUT = "secure_input_request", _("Confidential details requested")
    SECURE_STORED = "secure_input_completed", _("Outcome of the request")
    FILE = "file", _("File")


class Sender(TextChoices):
    VISITOR = "visitor", _("Visitor")
    BOT = "bot", _("Bot")
    HUMAN = "human", _("Person")
    SYSTEM = "system", _("System")


class TurnStatus(TextChoices):
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", _("Failed")
    PAUSED = "paused", _("Waiting for a person")
