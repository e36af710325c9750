"""Closed lists of values of automations (contract autonomy C, D). Values are never renamed or removed, only added."""

from __future__ import annotations

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class TriggerKind(TextChoices):
    """What starts a session. The last two are not triggers that a member can set up: another session starts it."""

    CRON = "cron", _("On a schedule")
    INTERVAL = "interval", _("At an interval")
    EVENT = "event", _("When something happens")
    WATCH = "watch", _("When a document is added")
    CHAIN = "chain", _("After another task")
    GOAL_CHECK = "goal_check", _("After a goal check")
    MANUAL = "manual", _("Manually")
    DELEGATED = "delegated", _("For another run")
    ESCALATED = "escalated", _("Escalated by a smaller model")


TIMED = frozenset({TriggerKind.CRON, TriggerKind.INTERVAL})


class Topic(TextChoices):
    """The events to which a trigger of kind `event` can listen."""

    DOCUMENT_STORED = "document_stored", _("A document was added or changed")
    QUESTION_UNANSWERED = "question_unanswered", _("A question could not be answered")
    PERSON_WANTED = "person_wanted", _("Work needs a person")
    WORK_ENDED = "work_ended", _("Work ended")
    GOAL_LOOKED_AT = "goal_looked_at", _("A goal was checked")


class BuiltinWorkflow(TextChoices):
    """A workflow that ships with the product and needs no model."""

    NONE = "", _("Follow the prompt")
    UNANSWERED = "unanswered", _("Review unanswered questions")
    CONTRADICTIONS = "contradictions", _("Check new documents for contradictions")
    GOAL = "goal", _("Report the state of a goal")
    UNHAPPY = "unhappy", _("Digest of unhappy conversations")
    PROMISES = "promises", _("Follow up promises to customers")
    SLA_RISK = "sla_risk", _("Find customers who wait too long")
    REFUNDS = "refund_anomalies", _("Find unusual refunds")
    WEEKLY = "weekly_insights", _("Weekly insights in words")
    STALE = "stale_documents", _("Find outdated documents")
    TRANSLATION = "translation", _("Translate new articles")
    MEMORY_REVIEW = "memory_review", _("Review what is remembered")


class Egress(TextChoices):
    """What of a run's texts may leave for a model's provider or another outside service; the first is the least."""

    NOTHING = "nothing", _("Nothing: only the built-in model, no outside services")
    ANONYMOUS = "anonymous", _("Texts with personal data replaced")
    FULL = "full", _("Texts as they are")


class SessionStatus(TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    AWAITING_APPROVAL = "awaiting_approval", _("Waiting for approval")
    COMPLETED = "completed", _("Done")
    HALTED = "halted", _("Stopped")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Canceled")


FINAL = (SessionStatus.COMPLETED, SessionStatus.HALTED, SessionStatus.FAILED, SessionStatus.CANCELLED)


class RouteKind(TextChoices):
    """Where the result of a completed session goes."""

    SILENT = "silent", _("Keep it in the run only")
    NOTIFY = "notify", _("Notify the owner")
    MEMORY_UPDATE = "memory_update", _("Propose to save it to memory")
    CHAIN_NEXT = "chain_next", _("Start another task with it")


class Severity(TextChoices):
    INFO = "info", _("Info")
    WARN = "warn", _("Warning")
    CRITICAL = "critical", _("Critical")


class ArtifactKind(TextChoices):
    """How an artifact is shown and downloaded."""

    MARKDOWN = "markdown", _("Document")
    TABLE = "table", _("Table")
    TEXT = "text", _("Text")


class FindingState(TextChoices):
    """What a finding is now: it lasts, a person dealt with it, or a later run no longer saw it."""

    OPEN = "open", _("Open")
    RESOLVED = "resolved", _("Resolved")
    GONE = "gone", _("Gone")


class ProposalKind(TextChoices):
    """What a proposal is added to once a person keeps it."""

    MEMORY = "memory", _("The company's memory")
    KNOWLEDGE = "knowledge", _("The company's documents")
    PREFERENCE = "preference", _("The bot's behavior")


class ProposalState(TextChoices):
    """proposed → kept or dismissed; kept → dismissed, dismissed → kept (contract autonomy A8)."""

    PROPOSED = "proposed", _("Waiting for a decision")
    KEPT = "kept", _("Kept")
    DISMISSED = "dismissed", _("Dismissed")


class PrecedentState(TextChoices):
    OPEN = "open", _("Observed")
    PROMOTED = "promoted", _("Proposed as a rule")
    DISMISSED = "dismissed", _("Dismissed")


class ContextState(TextChoices):
    PROPOSED = "proposed", _("Waiting for a decision")
    ACCEPTED = "accepted", _("Accepted")
    REJECTED = "rejected", _("Rejected")


class Channel(TextChoices):
    EMAIL = "email", _("Email")
    WEBHOOK = "webhook", _("Webhook")


class OutboxState(TextChoices):
    """waiting → sent, or given up after the last attempt. A row is sent once."""

    WAITING = "waiting", _("Waiting to be sent")
    SENT = "sent", _("Sent")
    GIVEN_UP = "given_up", _("Could not be sent")


class TaskEvent(TextChoices):
    """Events of tasks, sent over the console's socket and to webhooks (contract autonomy B2)."""

    SCHEDULED = "task:scheduled"
    STARTED = "task:started"
    COMPLETED = "task:completed"
    FAILED = "task:failed"
    HALTED = "task:halted"
    DEAD_LETTER = "task:dead_letter"
    BUDGET_WARNING = "task:budget_warning"
    BUDGET_EXCEEDED = "task:budget_exceeded"


class SpawnRefusal(TextChoices):
    """Why no session was started; the label is shown to people."""

    AUTONOMY_OFF = "autonomy_off", _("Automations are turned off for this company.")
    NOT_OPTED_IN = "not_opted_in", _("The task's owner has not allowed automations to run in their name.")
    NO_OWNER = "no_owner", _("The task no longer has an owner.")
    TASK_DELETED = "task_deleted", _("The task was deleted.")
    QUARANTINED = "quarantined", _("The task was paused after too many failures. Release it to run it again.")
    TRIGGER_OFF = "trigger_off", _("The trigger is off or was deleted.")
    CHAIN_LOOP = "chain_loop", _("A task cannot start itself, directly or through other tasks.")
    TOO_DEEP = "too_deep", _("This chain of tasks is too long.")
    NOTHING_LEFT = "nothing_left", _("The run that would start it has used up its limits.")
    PARENT_OVER = "parent_over", _("The run that would start it is over.")
    TWICE = "twice", _("This was started already.")
