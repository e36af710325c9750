"""Closed word lists of the work room (contract silas 2, 15)."""

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
    """Where an item runs: by itself in a worker, or as the standing policy of a conversation."""

    EPHEMERAL = "ephemeral"
    STREAM = "stream"


class AttemptStatus(TextChoices):
    """An attempt whose worker died is `interrupted` when the next one begins; a `paused` one goes on when a person has
    let through what a gate held back."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    PAUSED = "paused"


class WorkReason(TextChoices):
    """Why an item stopped where it stopped; stable codes (contract silas 15: error_code, and our own)."""

    NONE = "", "nothing to explain"
    DECLINED = "approval_denied", "a person said no"
    EXPIRED = "approval_expired", "nobody decided in time"
    NOT_APPROVED = "execution_blocked_no_approval", "the approval did not hold"
    BUDGET = "budget_exceeded", "the budget was used up"
    VERIFICATION = "verification_failed", "the outside checks did not pass"
    GATE = "gate_blocked", "policy does not allow it"
    REVIEW = "awaiting_review", "a gate asks for a person"
    REVIEW_DECLINED = "review_declined", "a person stopped it at a gate"
    REVIEW_EXPIRED = "review_expired", "a gate asked for a person, and its time ran out"
    HALTED = "halted", "a person stopped it"
    TOOL = "tool_failure", "a tool failed"
    UNCERTAIN = "effect_uncertain", "it cannot be known whether the action took effect"
    HANDED_OVER = "handed_over", "it was handed over, and nobody here can verify it"
    LINKAGE = "linkage_missing", "what this builds on is missing"
    CHILD = "child_failed", "one of its tasks did not get done"
    DEPENDENCY = "dependency_not_done", "what had to come first did not get done"
    LEFT_OUT = "left_out", "a person left it out"
    LOST = "delivery_failed", "it could not be delivered to a worker"
    CANCELLED = "cancelled", "it was called off"
    REPLANNED = "replanned", "another plan took its place"


class Waiting(TextChoices):
    """What a paused item waits for; each wait has an end, and the sweep sees to it (contract silas 15)."""

    NOTHING = "", "nothing"
    GUIDANCE = "awaiting_planner_guidance", "what the planner advises"
    REPLAN = "awaiting_replan", "another plan"
    REVIEW = "awaiting_review", "a person whom a gate asks for"


class PlanningState(TextChoices):
    """A planner at work that may ask for research (spec 19.4.1; contract silas 15)."""

    PLANNING = "planning"
    AWAITING_RESEARCH = "awaiting_research"
    READY_TO_FINALIZE = "ready_to_finalize"
    EXPIRED = "expired"
    FINISHED = "finished"


class ResearchState(TextChoices):
    """One question of a planner. Only an asked one can be answered; what comes later is written down and not used."""

    ASKED = "asked"
    ANSWERED = "answered"
    FAILED = "failed"
    EXPIRED = "expired"


class SlotKind(TextChoices):
    """What holds a place in the pool, in the order of who goes first (contract silas 15)."""

    EXECUTION = "execution"
    RESEARCH = "research"
    STATUS = "status"


class BatchStatus(TextChoices):
    """A batch is decided once; until then it can be cut to a selection, which asks anew (spec 5.2.4)."""

    PROPOSED = "proposed"
    RUNNING = "running"
    FINISHED = "finished"
    DECLINED = "declined"
    EXPIRED = "expired"
    REFUSED = "refused"


class CycleOutcome(TextChoices):
    """What one cycle of a goal came to (spec 5.2.3)."""

    HEALTHY = "healthy", "all checks passed"
    FAILED = "failed", "a check failed; the goal only reports it"
    SPAWNED = "spawned", "a check failed, and the standing approval let the repair run"
    ASKED = "asked", "a check failed, and a person is asked about the repair"
    UNDER_WAY = "under_way", "a check failed, and an earlier repair is still under way"
    PARKED = "parked", "the budget is used up; nothing runs until a person looks"


class Direction(TextChoices):
    """Which way a family's thresholds move: fewer cards, or more."""

    WIDEN = "widen", "Fewer cards"
    TIGHTEN = "tighten", "More cards"


class Band(TextChoices):
    """How sure a classification is, and so who sees it (spec 5.9)."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    NOVEL = "novel"


class EffectState(TextChoices):
    ASKED = "asked", "Waits for the trusted worker"
    DONE = "done", "Carried out"
    REFUSED = "refused", "Refused"
    WITHDRAWN = "withdrawn", "Nobody waited any longer"
