"""Enumerations of simulations."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class RunStatus(TextChoices):
    """queued → running → finished, stopped (by a person) or failed (it could not be carried out)."""

    QUEUED = "queued", _("Waiting")
    RUNNING = "running", _("Running")
    FINISHED = "finished", _("Finished")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", _("Could not be run")


ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING)


# What was left out of them can be played later.
RESUMABLE = (RunStatus.STOPPED, RunStatus.FAILED)


class Outcome(TextChoices):
    """`left_out`: not begun, because the run was stopped or its budget was spent."""

    WAITING = "waiting", _("Waiting")
    PASSED = "passed", _("Passed")
    FAILED = "failed", _("Failed")
    ERROR = "error", _("Broke off")
    LEFT_OUT = "left_out", _("Left out")


class Origin(TextChoices):
    """What a scenario was made from."""

    WRITTEN = "written", _("Written by hand")
    CONVERSATION = "conversation", _("A conversation")
    DOCUMENT = "document", _("A document")
    INCIDENT = "incident", _("An incident")
    ATTACKS = "attacks", _("The catalogue of attacks")


class Player(TextChoices):
    """Who plays the visitor. Without a model that can be used, `MODEL` says the lines of the scenario as well."""

    SCRIPT = "script", _("A script")
    MODEL = "model", _("A model")


class Ending(TextChoices):
    """Why a visitor whom a model plays said no more. It decides nothing about success."""

    GOAL_REACHED = "goal_reached", _("The visitor says they have what they wanted")
    GAVE_UP = "gave_up", _("The visitor gave up")
    TURN_LIMIT = "turn_limit", _("All turns were used")
    BUDGET = "budget", _("The budget was spent")


class Reviewer(TextChoices):
    """How the scripted reviewer of the isolated copy answers cards."""

    NONE = "none", _("Leaves cards open")
    APPROVE = "approve", _("Approves cards")
    DECLINE = "decline", _("Declines cards")
