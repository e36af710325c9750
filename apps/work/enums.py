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
    """An attempt whose worker died is `interrupted` when the next one begins."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class WorkReason(TextChoices):
    """Why an item stopped where it stopped; stable codes (contract silas 15: error_code, and our own)."""

    NONE = "", "nothing to explain"
    DECLINED = "approval_denied", "a person said no"
    EXPIRED = "approval_expired", "nobody decided in time"
    NOT_APPROVED = "execution_blocked_no_approval", "the approval did not hold"
    BUDGET = "budget_exceeded", "the budget was used up"
    VERIFICATION = "verification_failed", "the outside checks did not pass"
    GATE = "gate_blocked", "policy does not allow it"
    HALTED = "halted", "a person stopped it"
    TOOL = "tool_failure", "a tool failed"
    UNCERTAIN = "effect_uncertain", "it cannot be known whether the action took effect"
    LINKAGE = "linkage_missing", "what this builds on is missing"
    LOST = "delivery_failed", "it could not be delivered to a worker"
