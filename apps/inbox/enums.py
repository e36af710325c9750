"""States that staff give a conversation, what a list shows, colours of labels, lengths of a snooze."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class DeskStatus(TextChoices):
    """What staff have said about a conversation. Without a row it is open."""

    OPEN = "open", _("Open")
    SNOOZED = "snoozed", _("Snoozed")
    RESOLVED = "resolved", _("Resolved")


class Shown(TextChoices):
    """Which conversations a list shows. Open and bot together are what is active."""

    ACTIVE = "active", _("Active")
    OPEN = "open", _("Open")
    BOT = "bot", _("Bot")
    SNOOZED = "snoozed", _("Snoozed")
    RESOLVED = "resolved", _("Resolved")
    ANY = "any", _("Any state")


class Colour(TextChoices):
    """What marks a label besides its name; the stylesheet knows what each looks like by day and by night."""

    GREY = "grey", _("Grey")
    BLUE = "blue", _("Blue")
    GREEN = "green", _("Green")
    AMBER = "amber", _("Amber")
    ORANGE = "orange", _("Orange")
    RED = "red", _("Red")


class Snooze(TextChoices):
    """Until when a conversation rests, in the words of the menu."""

    LATER = "later", _("In three hours")
    TOMORROW = "tomorrow", _("Tomorrow at 9:00")
    MONDAY = "monday", _("Monday at 9:00")
    WEEK = "week", _("In a week")
    REPLY = "reply", _("When the visitor answers")
