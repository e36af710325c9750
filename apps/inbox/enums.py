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


class Sort(TextChoices):
    """By what a list of conversations is sorted."""

    ACTIVITY = "activity", _("Last active first")
    DUE = "due", _("Next due first")


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


class Assignment(TextChoices):
    """Who gets a conversation that waits for a team."""

    OFF = "off", _("Don't assign automatically")
    ROUND_ROBIN = "round_robin", _("Take turns")
    LEAST_LOAD = "least_load", _("Whoever has the fewest conversations")
    SKILL = "skill", _("Whoever has the matching skill")


class ViewPage(TextChoices):
    """The pages whose filters can be saved."""

    INBOX = "inbox", _("Inbox")
    REVIEW = "review", _("Review")


class Priority(TextChoices):
    """How urgent staff say that a conversation is."""

    NONE = "", _("No priority")
    LOW = "low", _("Low")
    NORMAL = "normal", _("Normal")
    HIGH = "high", _("High")
    URGENT = "urgent", _("Urgent")


class Do(TextChoices):
    """What a step of a macro or a rule does; its value says with what."""

    TAKE_OVER = "take_over", _("Take over")
    ASSIGN = "assign", _("Assign")
    TEAM = "team", _("Give to a team")
    LABEL = "label", _("Add a label")
    UNLABEL = "unlabel", _("Remove a label")
    PRIORITY = "priority", _("Set the priority")
    SNOOZE = "snooze", _("Snooze")
    RESOLVE = "resolve", _("Resolve")
    NOTE = "note", _("Add a private note")
    REPLY = "reply", _("Write a reply")


class RuleTrigger(TextChoices):
    """What makes an inbox rule look at a conversation."""

    OPENED = "opened", _("Conversation started")
    MESSAGE = "message", _("Visitor's message received")
    HANDED_OVER = "handed_over", _("Handed over to a person")
    WAITING = "waiting", _("Visitor has waited")
    RESOLVED = "resolved", _("Conversation resolved")
    REOPENED = "reopened", _("Conversation reopened")


class RuleMatch(TextChoices):
    """How many of a rule's conditions must be met."""

    ALL = "all", _("All conditions")
    ANY = "any", _("Any condition")


class ConditionField(TextChoices):
    """What a condition of a rule looks at."""

    CHATBOT = "chatbot", _("Chatbot")
    CHANNEL = "channel", _("Channel")
    LANGUAGE = "language", _("Language")
    LABEL = "label", _("Label")
    TEAM = "team", _("Team")
    ASSIGNED = "assigned", _("Assigned")
    HOURS = "hours", _("Opening hours")
    IDENTIFIED = "identified", _("Identity verified")
    TEXT = "text", _("Message text")


class ConditionOperator(TextChoices):
    """How a condition compares; the last two are for texts."""

    IS = "is", _("is")
    IS_NOT = "is_not", _("is not")
    CONTAINS = "contains", _("contains")
    CONTAINS_NOT = "contains_not", _("doesn't contain")


class SlaTarget(TextChoices):
    """What a policy sets a time for."""

    FIRST_REPLY = "first_reply", _("First reply")
    NEXT_REPLY = "next_reply", _("Next reply")
    RESOLUTION = "resolution", _("Resolution")


class SlaOutcome(TextChoices):
    """How a clock stands. `CANCELLED`: it no longer matters, for example because the bot answers again."""

    RUNNING = "running", _("Running")
    MET = "met", _("Met")
    MISSED = "missed", _("Missed")
    CANCELLED = "cancelled", _("Canceled")


class SlaEvent(TextChoices):
    """What starts, pauses and stops clocks. Of several at the same time, they count in this order."""

    WANTED = "wanted", _("A person is wanted")
    TAKEN_OVER = "taken_over", _("A person has taken over")
    ASKED = "asked", _("The visitor wrote to the team")
    REPLIED = "replied", _("The team replied")
    SNOOZED = "snoozed", _("Snoozed")
    RESOLVED = "resolved", _("Resolved")
    REOPENED = "reopened", _("Reopened")
    HANDED_BACK = "handed_back", _("Handed back to the bot")
