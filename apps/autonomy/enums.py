"""Closed lists of values of automations (contract autonomy C, D). Values are never renamed or removed, only added."""

from __future__ import annotations

from django.db.models import TextChoices


class TriggerKind(TextChoices):
    """What starts a session. The last two are not triggers that a member can set up: another session starts it."""

    CRON = "cron", "On a schedule"
    INTERVAL = "interval", "At an interval"
    EVENT = "event", "When something happens"
    WATCH = "watch", "When a document is added"
    CHAIN = "chain", "After another task"
    GOAL_CHECK = "goal_check", "After a goal check"
    MANUAL = "manual", "Manually"
    DELEGATED = "delegated", "For another run"
    ESCALATED = "escalated", "Escalated by a smaller model"


TIMED = frozenset({TriggerKind.CRON, TriggerKind.INTERVAL})
EVENT_DRIVEN = frozenset({TriggerKind.EVENT, TriggerKind.WATCH, TriggerKind.GOAL_CHECK})


class Topic(TextChoices):
    """The events to which a trigger of kind `event` can listen."""

    DOCUMENT_STORED = "document_stored", "A document was added or changed"
    QUESTION_UNANSWERED = "question_unanswered", "A question could not be answered"
    PERSON_WANTED = "person_wanted", "Work needs a person"
    WORK_ENDED = "work_ended", "Work ended"
    GOAL_LOOKED_AT = "goal_looked_at", "A goal was checked"


class BuiltinWorkflow(TextChoices):
    """A workflow that ships with the product and needs no model."""

    NONE = "", "Follow the prompt"
    UNANSWERED = "unanswered", "Review unanswered questions"
    CONTRADICTIONS = "contradictions", "Check new documents for contradictions"
    GOAL = "goal", "Report the state of a goal"


class SessionStatus(TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    AWAITING_APPROVAL = "awaiting_approval", "Waiting for approval"
    COMPLETED = "completed", "Done"
    HALTED = "halted", "Stopped"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Canceled"


FINAL = (SessionStatus.COMPLETED, SessionStatus.HALTED, SessionStatus.FAILED, SessionStatus.CANCELLED)


class RouteKind(TextChoices):
    """Where the result of a completed session goes."""

    SILENT = "silent", "Keep it in the run only"
    NOTIFY = "notify", "Notify the owner"
    MEMORY_UPDATE = "memory_update", "Propose to save it to memory"
    CHAIN_NEXT = "chain_next", "Start another task with it"


class Severity(TextChoices):
    INFO = "info", "Info"
    WARN = "warn", "Warning"
    CRITICAL = "critical", "Critical"


class ProposalKind(TextChoices):
    """What a proposal is added to once a person keeps it."""

    MEMORY = "memory", "The company's memory"
    KNOWLEDGE = "knowledge", "The company's documents"
    PREFERENCE = "preference", "The bot's behavior"


class ProposalState(TextChoices):
    """proposed → kept or dismissed; kept → dismissed, dismissed → kept (contract autonomy A8)."""

    PROPOSED = "proposed", "Waiting for a decision"
    KEPT = "kept", "Kept"
    DISMISSED = "dismissed", "Dismissed"


class PrecedentState(TextChoices):
    OPEN = "open", "Observed"
    PROMOTED = "promoted", "Proposed as a rule"
    DISMISSED = "dismissed", "Dismissed"


class ContextState(TextChoices):
    PROPOSED = "proposed", "Waiting for a decision"
    ACCEPTED = "accepted", "Accepted"
    REJECTED = "rejected", "Rejected"


class Channel(TextChoices):
    EMAIL = "email", "Email"
    WEBHOOK = "webhook", "Webhook"


class OutboxState(TextChoices):
    """waiting → sent, or given up after the last attempt. A row is sent once."""

    WAITING = "waiting", "Waiting to be sent"
    SENT = "sent", "Sent"
    GIVEN_UP = "given_up", "Could not be sent"


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

    AUTONOMY_OFF = "autonomy_off", "Automations are turned off for this company."
    NOT_OPTED_IN = "not_opted_in", "The task's owner has not allowed automations to run in their name."
    NO_OWNER = "no_owner", "The task no longer has an owner."
    TASK_DELETED = "task_deleted", "The task was deleted."
    QUARANTINED = "quarantined", "The task was paused after too many failures. Release it to run it again."
    TRIGGER_OFF = "trigger_off", "The trigger is off or was deleted."
    CHAIN_LOOP = "chain_loop", "A task cannot start itself, directly or through other tasks."
    TOO_DEEP = "too_deep", "This chain of tasks is too long."
    NOTHING_LEFT = "nothing_left", "The run that would start it has used up its limits."
    PARENT_OVER = "parent_over", "The run that would start it is over."
    TWICE = "twice", "This was started already."


class OutcomeKind(TextChoices):
    """What people did with something that the bot proposed (spec 5.2.4, 6.6)."""

    APPROVED = "approved", "Approved"
    EDIT_SELECTION = "edit_selection", "Approved with changes"
    DECLINED = "declined", "Declined"
    UNDO = "undo", "Undone"
    DISMISSED = "dismissed", "Dismissed"


class FreedomState(TextChoices):
    """State of a proposal to ask for approval more or less often. Unanswered, it expires and changes nothing."""

    OPEN = "open", "Waiting for a decision"
    APPLIED = "applied", "Applied"
    DECLINED = "declined", "Declined"
    TIGHTENED = "tightened", "Tightened instead"
    REFUSED = "refused", "No longer applicable"
    EXPIRED = "expired", "Expired"


class SuggestionSource(TextChoices):
    """Where a suggestion comes from; values as in the specification (SuggestionProposal)."""

    IDLE_HEARTBEAT = "idle_heartbeat", "Regular check"
    POST_EXECUTION = "post_execution", "Work completed"
    GOAL_MONITOR = "goal_monitor", "Goal check"


class SuggestionAction(TextChoices):
    """What accepting leads to: always something that needs its own approval, or that a person does."""

    LOOK = "look", "A person looks at it"
    PROMOTE = "promote", "A pattern is proposed as a rule"
    PLAN = "plan", "A plan is proposed"


class SuggestionState(TextChoices):
    OPEN = "open", "Waiting for a decision"
    ACCEPTED = "accepted", "Accepted"
    DISMISSED = "dismissed", "Dismissed"
    DEFERRED = "deferred", "Snoozed"
    MUTED = "muted", "Muted"
    EXPIRED = "expired", "Expired"
