"""Kinds and states of what visitors are asked, and of what they leave beside messages."""

from django.db.models import TextChoices


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
