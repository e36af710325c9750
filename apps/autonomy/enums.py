"""Closed word lists of what runs unattended (contract autonomy C, D). Values stay for ever; new ones are added."""

from __future__ import annotations

from django.db.models import TextChoices


class TriggerKind(TextChoices):
    """What makes a session begin. The last two are never a trigger of somebody's: a session began it itself."""

    CRON = "cron", "On a schedule"
    INTERVAL = "interval", "Every so often"
    EVENT = "event", "When something happens"
    WATCH = "watch", "When a document comes in"
    CHAIN = "chain", "After another task"
    GOAL_CHECK = "goal_check", "When a goal was looked at"
    MANUAL = "manual", "By hand"
    DELEGATED = "delegated", "For another session"
    ESCALATED = "escalated", "Because a small model asked for a capable one"


TIMED = frozenset({TriggerKind.CRON, TriggerKind.INTERVAL})
EVENT_DRIVEN = frozenset({TriggerKind.EVENT, TriggerKind.WATCH, TriggerKind.GOAL_CHECK})


class Topic(TextChoices):
    """What a trigger of kind `event` may listen to."""

    DOCUMENT_STORED = "document_stored", "A document came in or changed"
    QUESTION_UNANSWERED = "question_unanswered", "A question was not answered"
    PERSON_WANTED = "person_wanted", "Work asked for a person"
    WORK_ENDED = "work_ended", "Work ended"
    GOAL_LOOKED_AT = "goal_looked_at", "A goal was looked at"


class BuiltinWorkflow(TextChoices):
    """A way to look into something that is ours, and needs no model."""

    NONE = "", "What the prompt says"
    UNANSWERED = "unanswered", "Go through what could not be answered"
    CONTRADICTIONS = "contradictions", "Compare new documents with the others"
    GOAL = "goal", "Say how the goal stands"


class SessionStatus(TextChoices):
    QUEUED = "queued", "Waits for its turn"
    RUNNING = "running", "Running"
    AWAITING_APPROVAL = "awaiting_approval", "Waits for a person"
    COMPLETED = "completed", "Done"
    HALTED = "halted", "Stopped"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Called off"


FINAL = (SessionStatus.COMPLETED, SessionStatus.HALTED, SessionStatus.FAILED, SessionStatus.CANCELLED)


class RouteKind(TextChoices):
    """Where a result goes once its session is completed."""

    SILENT = "silent", "Nowhere"
    NOTIFY = "notify", "Tell the owner"
    MEMORY_UPDATE = "memory_update", "Propose to remember it"
    CHAIN_NEXT = "chain_next", "Begin another task with it"


class Severity(TextChoices):
    INFO = "info", "Worth knowing"
    WARN = "warn", "Look at it"
    CRITICAL = "critical", "Look at it now"


class ProposalKind(TextChoices):
    """What a proposal would add to, once a person keeps it."""

    MEMORY = "memory", "The company's memory"
    KNOWLEDGE = "knowledge", "The company's documents"
    PREFERENCE = "preference", "How the bot behaves"


class ProposalState(TextChoices):
    """proposed → kept or dismissed; kept → dismissed, dismissed → kept (contract autonomy A8)."""

    PROPOSED = "proposed", "Waits for a person"
    KEPT = "kept", "Kept"
    DISMISSED = "dismissed", "Dismissed"


class PrecedentState(TextChoices):
    OPEN = "open", "Seen"
    PROMOTED = "promoted", "Put forward as a rule"
    DISMISSED = "dismissed", "Dismissed"


class ContextState(TextChoices):
    PROPOSED = "proposed", "Waits for a person"
    ACCEPTED = "accepted", "Accepted"
    REJECTED = "rejected", "Rejected"


class Channel(TextChoices):
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"


class OutboxState(TextChoices):
    """waiting → sent, or given up after the last try. A row is sent once."""

    WAITING = "waiting", "Waits to be sent"
    SENT = "sent", "Sent"
    GIVEN_UP = "given_up", "Could not be sent"


class TaskEvent(TextChoices):
    """What is told of tasks, on the console's socket and to webhooks (contract autonomy B2)."""

    SCHEDULED = "task:scheduled"
    STARTED = "task:started"
    COMPLETED = "task:completed"
    FAILED = "task:failed"
    HALTED = "task:halted"
    DEAD_LETTER = "task:dead_letter"
    BUDGET_WARNING = "task:budget_warning"
    BUDGET_EXCEEDED = "task:budget_exceeded"


class SpawnRefusal(TextChoices):
    """Why no session began; the label is what people read."""

    AUTONOMY_OFF = "autonomy_off", "Work that runs unattended is switched off for this company."
    NOT_OPTED_IN = "not_opted_in", "The task's owner has not allowed work that runs unattended."
    NO_OWNER = "no_owner", "The task has no owner any more."
    TASK_DELETED = "task_deleted", "The task was deleted."
    QUARANTINED = "quarantined", "The task failed too often and waits for a person."
    TRIGGER_OFF = "trigger_off", "The trigger is switched off or was deleted."
    CHAIN_LOOP = "chain_loop", "A task cannot follow from itself."
    TOO_DEEP = "too_deep", "Too many tasks follow from one another."
    NOTHING_LEFT = "nothing_left", "The session that would begin it has nothing left to spend."
    PARENT_OVER = "parent_over", "The session that would begin it is over."
    TWICE = "twice", "This has begun already."


class OutcomeKind(TextChoices):
    """What people did with something the bot proposed (spec 5.2.4, 6.6)."""

    APPROVED = "approved", "Approved"
    EDIT_SELECTION = "edit_selection", "Approved in part, or in other words"
    DECLINED = "declined", "Declined"
    UNDO = "undo", "Undone"
    DISMISSED = "dismissed", "Dismissed"


class FreedomState(TextChoices):
    """What became of a proposal to ask more or less often. Silence is a no."""

    OPEN = "open", "Waits for a person"
    APPLIED = "applied", "Applied"
    DECLINED = "declined", "Declined"
    TIGHTENED = "tightened", "Tightened instead"
    REFUSED = "refused", "Did not hold any more"
    EXPIRED = "expired", "Nobody decided"


class SuggestionSource(TextChoices):
    """Spelled as the specification does (SuggestionProposal)."""

    IDLE_HEARTBEAT = "idle_heartbeat", "Looked around"
    POST_EXECUTION = "post_execution", "Work was done"
    GOAL_MONITOR = "goal_monitor", "A goal was looked at"


class SuggestionAction(TextChoices):
    """What `do it` leads to: always something that asks anew, or that a person does themself."""

    LOOK = "look", "Somebody looks"
    PROMOTE = "promote", "A pattern is put forward"
    PLAN = "plan", "A plan is proposed"


class SuggestionState(TextChoices):
    OPEN = "open", "Waits for a person"
    ACCEPTED = "accepted", "Taken up"
    DISMISSED = "dismissed", "Not now"
    DEFERRED = "deferred", "Later"
    MUTED = "muted", "Never again"
    EXPIRED = "expired", "Nobody answered"
