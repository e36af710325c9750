"""States that staff give a conversation, what a list shows, colours of labels, lengths of a snooze."""

from django.db.models import TextChoices


class DeskStatus(TextChoices):
    """What staff have said about a conversation. Without a row it is open."""

    OPEN = "open", "Open"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Resolved"


class Shown(TextChoices):
    """Which conversations a list shows. Open and bot together are what is active."""

    ACTIVE = "active", "Active"
    OPEN = "open", "Open"
    BOT = "bot", "Bot"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Resolved"
    ANY = "any", "Any state"


class Colour(TextChoices):
    """What marks a label besides its name; the stylesheet knows what each looks like by day and by night."""

    GREY = "grey", "Grey"
    BLUE = "blue", "Blue"
    GREEN = "green", "Green"
    AMBER = "amber", "Amber"
    ORANGE = "orange", "Orange"
    RED = "red", "Red"


class Snooze(TextChoices):
    """Until when a conversation rests, in the words of the menu."""

    LATER = "later", "In three hours"
    TOMORROW = "tomorrow", "Tomorrow at 9:00"
    MONDAY = "monday", "Monday at 9:00"
    WEEK = "week", "In a week"
    REPLY = "reply", "When the visitor answers"
