"""Enumerations of the bus (spec 19.2.1; contract silas 15)."""

from django.db.models import TextChoices

from apps.bus.workers import Worker
from kernel.language import gettext_lazy as _


class Queue(TextChoices):
    """Queues of messages between agents (spec 19.2.1), and queues of jobs, by trust and weight."""

    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"
    TRUSTED = "trusted"
    WORK = "work"
    PARSE = "parse"
    UPKEEP = "upkeep"
    SIMULATION = "simulation"


# The queues between agents; a step of a message on them is in the audit log.
AGENTS = frozenset({Queue.PLANNER, Queue.EXECUTOR, Queue.RUNTIME})
# The worker of each queue. Turns (`proxy`) and simulated conversations run in web processes, which have no Celery.
WORKER_OF = {
    Queue.PLANNER: Worker.WORK,
    Queue.EXECUTOR: Worker.WORK,
    Queue.RUNTIME: Worker.WORK,
    Queue.TRUSTED: Worker.TRUSTED,
    Queue.WORK: Worker.WORK,
    Queue.PARSE: Worker.PARSE,
    Queue.UPKEEP: Worker.UPKEEP,
}


class Kind(TextChoices):
    """Kinds of messages and jobs.

    Beyond the specification: `execution_request`, which dispatches an approved item (contract silas 15, gap),
    `autonomous_session`, `review_owed` (ADR 42), `connection_owed` (ADR 77) and all jobs. Its `plan_request` does not
    exist: a web process plans inside the turn.
    """

    USER_MESSAGE = "user_message"
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
    CARD_EXPIRY = "card_expiry"
    CARD_ALERT = "card_alert"
    ACCOUNT_MAIL = "account_mail"
    OUTBOX_DELIVERY = "outbox_delivery"
    HOLD_ALERT = "hold_alert"
    SAFETY_CODE_MAIL = "safety_code_mail"
    TRANSCRIPT_MAIL = "transcript_mail"
    DOCUMENT_CHANGE = "document_change"
    DOCUMENT_INTAKE = "document_intake"
    DOCUMENT_INDEX = "document_index"
    CHECKPOINT = "checkpoint"
    RETENTION = "retention"
    FILE_CLEANUP = "file_cleanup"
    SKILL_TRIAL = "skill_trial"
    SKILL_TRIED = "skill_tried"
    CONNECTION_SETUP = "connection_setup"
    CONNECTION_DISCOVERY = "connection_discovery"
    CONNECTION_CHECK = "connection_check"
    KEYRING_CLEANUP = "keyring_cleanup"
    TOOL_SERVER_CHECK = "tool_server_check"
    WAIT_END = "wait_end"
    GOAL_CYCLE = "goal_cycle"
    TRIGGER_DUE = "trigger_due"
    SESSION_ADMISSION = "session_admission"
    SESSION_WATCH = "session_watch"
    SUGGESTION_LOOK = "suggestion_look"
    LOST_CALLS = "lost_calls"
    SAFETY_EXPIRY = "safety_expiry"
    MEMORY_CONSOLIDATION = "memory_consolidation"
    SIMULATION_RUN = "simulation_run"
    SIMULATION_CHUNK = "simulation_chunk"
    GAP_CLUSTERING = "gap_clustering"
    SOURCE_SYNC = "source_sync"
    MEMORY_EMBEDDING = "memory_embedding"
    MEMORY_READING = "memory_reading"
    PROVIDER_EMBEDDING = "provider_embedding"
    IMPORT_READ = "import_read"
    IMPORT_APPLY = "import_apply"
    CHANNEL_INBOUND = "channel_inbound"
    CHANNEL_DELIVERY = "channel_delivery"
    CHANNEL_POLL = "channel_poll"
    CARD_NOTICE = "card_notice"
    MAIL_READ = "mail_read"
    DESK_ROUTING = "desk_routing"
    INBOX_RULES = "inbox_rules"
    PERSON_ERASURE = "person_erasure"
    SLA_CLOCKS = "sla_clocks"


# The queue of each kind of job.
QUEUE_OF = {
    **dict.fromkeys(
        (
            Kind.REVIEW_OWED,
            Kind.CONNECTION_OWED,
            Kind.CARD_EXPIRY,
            Kind.CARD_ALERT,
            Kind.ACCOUNT_MAIL,
            Kind.OUTBOX_DELIVERY,
            Kind.HOLD_ALERT,
            Kind.SAFETY_CODE_MAIL,
            Kind.TRANSCRIPT_MAIL,
            Kind.DOCUMENT_CHANGE,
            Kind.DOCUMENT_INDEX,
            Kind.CHECKPOINT,
            Kind.RETENTION,
            Kind.FILE_CLEANUP,
            Kind.SKILL_TRIED,
            Kind.SUGGESTION_LOOK,
            Kind.SAFETY_EXPIRY,
            Kind.MEMORY_CONSOLIDATION,
            Kind.GAP_CLUSTERING,
            Kind.SOURCE_SYNC,
            Kind.MEMORY_EMBEDDING,
            Kind.MEMORY_READING,
            Kind.PROVIDER_EMBEDDING,
            Kind.IMPORT_APPLY,
            Kind.CHANNEL_INBOUND,
            Kind.CHANNEL_DELIVERY,
            Kind.CHANNEL_POLL,
            Kind.CARD_NOTICE,
            Kind.DESK_ROUTING,
            Kind.INBOX_RULES,
            Kind.PERSON_ERASURE,
            Kind.SLA_CLOCKS,
        ),
        Queue.TRUSTED,
    ),
    **dict.fromkeys((Kind.CONNECTION_SETUP, Kind.CONNECTION_DISCOVERY, Kind.GOAL_CYCLE, Kind.SKILL_TRIAL), Queue.WORK),
    **dict.fromkeys((Kind.DOCUMENT_INTAKE, Kind.IMPORT_READ, Kind.MAIL_READ), Queue.PARSE),
    **dict.fromkeys((Kind.SIMULATION_RUN, Kind.SIMULATION_CHUNK), Queue.SIMULATION),
    **dict.fromkeys(
        (
            Kind.CONNECTION_CHECK,
            Kind.KEYRING_CLEANUP,
            Kind.TOOL_SERVER_CHECK,
            Kind.WAIT_END,
            Kind.TRIGGER_DUE,
            Kind.SESSION_ADMISSION,
            Kind.SESSION_WATCH,
            Kind.LOST_CALLS,
        ),
        Queue.UPKEEP,
    ),
}


class Sender(TextChoices):
    USER = "user"
    PROXY = "proxy"
    PLANNER = "planner"
    EXECUTOR = "executor"
    RUNTIME = "runtime"


class State(TextChoices):
    """queued → leased → acked, or back to queued, or dead. A person retries or drops dead messages."""

    QUEUED = "queued"
    LEASED = "leased"
    ACKED = "acked"
    DEAD = "dead"
    DROPPED = "dropped"


class SetAside(TextChoices):
    """What can be set aside beside a session and a trigger, which have owners of their own: the label is what a person
    reads. A new one has a place to press in `autonomy.services.notices`, and a line in docs/alerts.md."""

    MESSAGE = "message", _("Work failed for good")
    WORK = "work", _("Work stopped before it was done")
    DOCUMENT = "document", _("A document could not be read")
    SKILL = "skill", _("A skill failed its trial after it was approved")
    TOOL_SERVER = "tool_server", _("A tool server could not be asked")
    WEBHOOK = "webhook", _("A webhook could not be delivered")
    TRANSCRIPT = "transcript", _("A transcript could not be sent to a visitor")
    SLA_MISSED = "sla_missed", _("A reply or resolution is overdue")


LIVE = (State.QUEUED, State.LEASED)
# Never delivered again.
CLOSED = (State.ACKED, State.DROPPED)


class Urgency(TextChoices):
    BACKGROUND = "background"
    INFORMATIONAL = "informational"
    NEEDS_ATTENTION = "needs_attention"


class FailureCode(TextChoices):
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


# Statuses that require an error code (contract silas 15: error_code).
FAILING = (
    ExecutionStatus.FAILED,
    ExecutionStatus.STUCK,
    ExecutionStatus.BLOCKED,
    ExecutionStatus.VERIFICATION_FAILED,
)
