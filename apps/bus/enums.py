"""Closed word lists of the bus (spec 19.2.1; contract silas 15)."""

from django.db.models import TextChoices


class Queue(TextChoices):
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"


class Kind(TextChoices):
    """`execution_request` is ours: without it nothing dispatches an approved item (contract silas 15, gap), and so are
    `autonomous_session` (ADR 40), `review_owed` (ADR 42) and `connection_owed` (ADR 77). Nobody sends `plan_request`: a
    web process plans inside the turn (ADR 16)."""

    USER_MESSAGE = "user_message"
    PLAN_REQUEST = "plan_request"
    PLAN_RESULT = "plan_result"
    RESEARCH_REQUEST = "research_request"
    RESEARCH_RESULT = "research_result"
    EXECUTION_STATUS = "execution_status"
    CONSULT_PLANNER = "consult_planner"
    PLANNER_GUIDANCE = "planner_guidance"
    REPLAN_REQUEST = "replan_request"
    SYSTEM_EVENT = "system_event"
    EXECUTION_REQUEST = "execution_request"
    AUTONOMOUS_SESSION = "autonomous_session"
    REVIEW_OWED = "review_owed"
    CONNECTION_OWED = "connection_owed"


class Sender(TextChoices):
    USER = "user"
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"


class State(TextChoices):
    """queued → leased → acked, or back to queued, or dead. What is dead a person puts in line again or drops."""

    QUEUED = "queued"
    LEASED = "leased"
    ACKED = "acked"
    DEAD = "dead"
    DROPPED = "dropped"


class SetAside(TextChoices):
    """What can be set aside beside a session and a trigger, which have owners of their own: the label is what a person
    reads. A new one has a place to press in `autonomy.services.notices`, and a line in docs/alerts.md."""

    MESSAGE = "message", "Work failed for good"
    WORK = "work", "Work stopped before it was done"
    DOCUMENT = "document", "A document could not be read"
    SKILL = "skill", "A skill failed its trial after it was approved"
    TOOL_SERVER = "tool_server", "A tool server could not be asked"
    WEBHOOK = "webhook", "A webhook could not be delivered"
    TRANSCRIPT = "transcript", "A transcript could not be sent to a visitor"


LIVE = (State.QUEUED, State.LEASED)
# Nothing of it is delivered any more, whatever anybody decides.
CLOSED = (State.ACKED, State.DROPPED)


class Urgency(TextChoices):
    BACKGROUND = "background"
    INFORMATIONAL = "informational"
    NEEDS_ATTENTION = "needs_attention"


class ErrorCode(TextChoices):
    TOOL_FAILURE = "tool_failure"
    BUDGET_EXCEEDED = "budget_exceeded"
    GATE_BLOCKED = "gate_blocked"
    APPROVAL_DENIED = "approval_denied"
    VERIFICATION_FAILED = "verification_failed"
    TIMEOUT = "timeout"


class ExecutionStatus(TextChoices):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STUCK = "stuck"
    BLOCKED = "blocked"
    VERIFICATION_FAILED = "verification_failed"


# Statuses that say why (contract silas 15: error_code).
FAILING = (
    ExecutionStatus.FAILED,
    ExecutionStatus.STUCK,
    ExecutionStatus.BLOCKED,
    ExecutionStatus.VERIFICATION_FAILED,
)
