"""Enumerations of the work room (contract silas 2, 15)."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class WorkItemType(TextChoices):
    TASK = "task"
    PROJECT = "project"
    GOAL = "goal"


class WorkItemStatus(TextChoices):
    PENDING = "pending", _("Pending")
    RUNNING = "running", _("Running")
    HEALTHY = "healthy", _("Healthy")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    STUCK = "stuck", _("Stuck")
    BLOCKED = "blocked", _("Blocked")
    PAUSED = "paused", _("Paused")


class Lane(TextChoices):
    """Where an item runs: on its own in a worker, or as the standing policy of a conversation."""

    EPHEMERAL = "ephemeral"
    STREAM = "stream"


class AttemptStatus(TextChoices):
    """`interrupted`: the worker died and the next attempt began. `paused`: waits for a person at a gate, then
    continues."""

    RUNNING = "running", _("Running")
    PASSED = "passed", _("Passed")
    FAILED = "failed", _("Failed")
    INTERRUPTED = "interrupted", _("Interrupted")
    PAUSED = "paused", _("Paused")


class WorkReason(TextChoices):
    """Why an item stopped; stable codes (contract silas 15: error_code, and our own)."""

    NONE = "", _("no reason")
    DECLINED = "approval_denied", _("rejected by a person")
    EXPIRED = "approval_expired", _("not decided in time")
    NOT_APPROVED = "execution_blocked_no_approval", _("no valid approval")
    BUDGET = "budget_exceeded", _("budget used up")
    VERIFICATION = "verification_failed", _("verification failed")
    GATE = "gate_blocked", _("blocked by policy")
    REVIEW = "awaiting_review", _("waiting for review")
    REVIEW_DECLINED = "review_declined", _("stopped in review")
    REVIEW_EXPIRED = "review_expired", _("review timed out")
    HALTED = "halted", _("stopped by a person")
    TOOL = "tool_failure", _("a tool failed")
    UNCERTAIN = "effect_uncertain", _("unclear whether the action took effect")
    HANDED_OVER = "handed_over", _("handed over, not verified")
    LINKAGE = "linkage_missing", _("what this builds on is missing")
    CHILD = "child_failed", _("one of its tasks failed")
    DEPENDENCY = "dependency_not_done", _("an earlier task was not done")
    LEFT_OUT = "left_out", _("left out by a person")
    LOST = "delivery_failed", _("could not be delivered to a worker")
    CANCELLED = "cancelled", _("cancelled")
    REPLANNED = "replanned", _("replaced by another plan")


class Waiting(TextChoices):
    """What a paused item waits for. Every wait has an end, which a recurring message enforces (contract silas 15)."""

    NOTHING = "", _("nothing")
    GUIDANCE = "awaiting_planner_guidance", _("advice from the planner")
    REPLAN = "awaiting_replan", _("another plan")
    REVIEW = "awaiting_review", _("a review")


class PlanningState(TextChoices):
    """State of a planner run that may ask for research (spec 19.4.1; contract silas 15)."""

    PLANNING = "planning"
    AWAITING_RESEARCH = "awaiting_research"
    READY_TO_FINALIZE = "ready_to_finalize"
    EXPIRED = "expired"
    FINISHED = "finished"


class ResearchState(TextChoices):
    """State of one research question. Only an `asked` question can be answered; a late answer is recorded, not used."""

    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    EXPIRED = "expired"


class SlotKind(TextChoices):
    """What occupies a place in the pool, in order of priority (contract silas 15)."""

    EXECUTION = "execution"
    RESEARCH = "research"
    STATUS = "status"


class BatchStatus(TextChoices):
    """A batch is decided once. Until then it can be reduced to a selection, which needs a new card (spec 5.2.4)."""

    PROPOSED = "proposed"
    RUNNING = "running"
    FINISHED = "finished"
    DECLINED = "declined"
    EXPIRED = "expired"
    REFUSED = "refused"


class CycleOutcome(TextChoices):
    """Result of one cycle of a goal (spec 5.2.3)."""

    HEALTHY = "healthy", _("all checks passed")
    FAILED = "failed", _("a check failed; reported only")
    SPAWNED = "spawned", _("a check failed; repair started under the standing approval")
    ASKED = "asked", _("a check failed; repair waits for approval")
    UNDER_WAY = "under_way", _("a check failed; an earlier repair is still running")
    PARKED = "parked", _("budget used up; parked until a person resumes it")


class Direction(TextChoices):
    """Whether the thresholds of a family of actions lead to fewer cards or to more."""

    WIDEN = "widen", _("Fewer cards")
    TIGHTEN = "tighten", _("More cards")


class Band(TextChoices):
    """How confident a classification is, which decides who reviews it (spec 5.9)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOVEL = "novel"


class EffectState(TextChoices):
    ASKED = "asked", _("Waiting for the trusted worker")
    DONE = "done", _("Carried out")
    REFUSED = "refused", _("Refused")
    WITHDRAWN = "withdrawn", _("Timed out")
