"""Kinds and states of what visitors are asked, and of what they leave beside messages."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class AskKind(TextChoices):
    """What a visitor can be asked to press, to give or to fill in (spec 8.1)."""

    DECISION = "decision", _("Question")
    SECURE_INPUT = "secure_input", _("Confidential details needed")
    FORM = "form", _("Form")


class AskStatus(TextChoices):
    """Open until one of the others; whose time is up stays open and can no longer be answered."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


class QuestionKind(TextChoices):
    """What the form before the first word may ask."""

    NAME = "name", _("Name")
    EMAIL = "email", _("E-mail address")
    TEXT = "text", _("Text")
    CHOICE = "choice", _("Choice")


class FieldKind(TextChoices):
    """What a field of a form takes that a visitor is asked to fill in."""

    TEXT = "text", _("Text")
    EMAIL = "email", _("E-mail address")
    NUMBER = "number", _("Number")
    CHOICE = "choice", _("Choice")
    DATE = "date", _("Date")


class Audience(TextChoices):
    """Which visitors a proactive message is for."""

    EVERYONE = "everyone", _("Everyone")
    NEW = "new", _("Visitors without a conversation")
    RETURNING = "returning", _("Visitors with a conversation")
    IDENTIFIED = "identified", _("Logged-in visitors")


class RatingScale(TextChoices):
    """With what a visitor says how it was."""

    STARS = "stars", _("One to five stars")
    THUMBS = "thumbs", _("Thumb up or down")


class TranscriptState(TextChoices):
    OWED = "owed", _("Waiting to be sent")
    SENT = "sent", _("Sent")
    GIVEN_UP = "given_up", _("Could not be sent")
