"""Closed lists of values of suggestions. Values are never renamed or removed, only added."""

from __future__ import annotations

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class OutcomeKind(TextChoices):
    """What people did with something that the bot proposed (spec 5.2.4, 6.6)."""

    APPROVED = "approved", _("Approved")
    EDIT_SELECTION = "edit_selection", _("Approved with changes")
    DECLINED = "declined", _("Declined")
    UNDO = "undo", _("Undone")
    DISMISSED = "dismissed", _("Dismissed")


class FreedomState(TextChoices):
    """State of a proposal to ask for approval more or less often. Unanswered, it expires and changes nothing."""

    OPEN = "open", _("Waiting for a decision")
    APPLIED = "applied", _("Applied")
    DECLINED = "declined", _("Declined")
    TIGHTENED = "tightened", _("Tightened instead")
    REFUSED = "refused", _("No longer applicable")
    EXPIRED = "expired", _("Expired")


class SuggestionSource(TextChoices):
    """Where a suggestion comes from; values as in the specification (SuggestionProposal)."""

    IDLE_HEARTBEAT = "idle_heartbeat", _("Regular check")
    POST_EXECUTION = "post_execution", _("Work completed")
    GOAL_MONITOR = "goal_monitor", _("Goal check")


class SuggestionAction(TextChoices):
    """What accepting leads to: always something that needs its own approval, or that a person does."""

    LOOK = "look", _("A person looks at it")
    PROMOTE = "promote", _("A pattern is proposed as a rule")
    PLAN = "plan", _("A plan is proposed")


class SuggestionState(TextChoices):
    OPEN = "open", _("Waiting for a decision")
    ACCEPTED = "accepted", _("Accepted")
    DISMISSED = "dismissed", _("Dismissed")
    DEFERRED = "deferred", _("Snoozed")
    MUTED = "muted", _("Muted")
    EXPIRED = "expired", _("Expired")
