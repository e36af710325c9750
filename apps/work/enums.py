"""Enumerations of the work room (contract silas 2, 15)."""

from django.db.models import TextChoices


class WorkItemType(TextChoices):
    TASK = "task"
    PROJECT = "project"
    GOAL = "goal"


class WorkItemStatus(TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    HEALTHY = "healthy"
    DONE = "done"
    FAILED = "failed"
    STUCK = "stuck"
    BLOCKED = "blocked"
    PAUSED = "paused"


class Lane(TextChoices):
    """Where an item runs: on its own in a worker, or as the standing policy of a conversation."""

    EPHEMERAL = "ephemeral"
    STREAM = "stream"


class AttemptStatus(TextChoices):
    """`interrupted`: the worker died and the next attempt began. `paused`: waits for a person at a gate, then
    continues."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    PAUSED = "paused"


class WorkReason(TextChoices):
    """Why an item stopped; stable codes (contract silas 15: error_code, and our own)."""

    NONE = "", "no reason"
    DECLINED = "approval_denied", "rejected by a person"
    EXPIRED = "approval_expired", "not decided in time"
    NOT_APPROVED = "execution_blocked_no_approval", "no valid approval"
    BUDGET = "budget_exceeded", "budget used up"
    VERIFICATION = "verification_failed", "verification failed"
    GATE = "gate_blocked", "blocked by policy"
    REVIEW = "awaiting_review", "waiting for review"
    REVIEW_DECLINED = "review_declined", "stopped in review"
    REVIEW_EXPIRED = "review_expired", "review timed out"
    HALTED = "halted", "stopped by a person"
    TOOL = "tool_failure", "a tool failed"
    UNCERTAIN = "effect_uncertain", "unclear whether the action took effect"
    HANDED_OVER = "handed_over", "handed over, not verified"
    LINKAGE = "linkage_missing", "what this builds on is missing"
    CHILD = "child_failed", "one of its tasks failed"
    DEPENDENCY = "dependency_not_done", "an earlier task was not done"
    LEFT_OUT = "left_out", "left out by a person"
    LOST = "delivery_failed", "could not be delivered to a worker"
    CANCELLED = "cancelled", "cancelled"
    REPLANNED = "replanned", "replaced by another plan"


class Waiting(TextChoices):
    """What a paused item waits for. Every wait has an end, which a recurring message enforces (contract silas 15)."""

    NOTHING = "", "nothing"
    GUIDANCE = "awaiting_planner_guidance", "advice from the planner"
    REPLAN = "awaiting_replan", "another plan"
    REVIEW = "awaiting_review", "a review"


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

    HEALTHY = "healthy", "all checks passed"
    FAILED = "failed", "a check failed; reported only"
    SPAWNED = "spawned", "a check failed; repair started under the standing approval"
    ASKED = "asked", "a check failed; repair waits for approval"
    UNDER_WAY = "under_way", "a check failed; an earlier repair is still running"
    PARKED = "parked", "budget used up; parked until a person resumes it"


class Direction(TextChoices):
    """Whether the thresholds of a family of actions lead to fewer cards or to more."""

    WIDEN = "widen", "Fewer cards"
    TIGHTEN = "tighten", "More cards"


class Band(TextChoices):
    """How confident a classification is, which decides who reviews it (spec 5.9)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOVEL = "novel"


class EffectState(TextChoices):
    ASKED = "asked", "Waiting for the trusted worker"
    DONE = "done", "Carried out"
    REFUSED = "refused", "Refused"
    WITHDRAWN = "withdrawn", "Timed out"
