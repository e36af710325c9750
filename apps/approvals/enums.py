"""Enums of the approvals room (contract silas 2, spec 0.5.2, 5.11)."""

from enum import StrEnum

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class ApprovalScope(TextChoices):
    FULL_PLAN = "full_plan"
    SINGLE_STEP = "single_step"
    SKILL_INSTALL = "skill_install"
    BUDGET = "budget"
    CONNECTION_ACT = "connection_act"
    CONNECTION_MANAGE = "connection_manage"
    AUTONOMY_THRESHOLD = "autonomy_threshold"
    STANDING = "standing"


class ApprovalVerdict(TextChoices):
    APPROVED = "approved"
    DECLINED = "declined"
    EDIT_REQUESTED = "edit_requested"
    CONDITIONAL = "conditional"


class DeclineReason(TextChoices):
    """Why a request was declined. The customer is told each in words of its own (`work.visitor_messages`)."""

    WRONG_DETAILS = "wrong_details", _("The details are wrong")
    MISSING_INFORMATION = "missing_information", _("Information is missing")
    NOT_VERIFIED = "not_verified", _("The identity isn't verified")
    AGAINST_POLICY = "against_policy", _("Our policy doesn't allow it")
    ALREADY_DONE = "already_done", _("Already requested or done")
    NOT_NEEDED = "not_needed", _("No longer needed")


class ApprovalStrength(TextChoices):
    TAP = "tap"


class Risk(TextChoices):
    """From the lowest to the highest; `cards.risk` relies on the order."""

    LOW = "low", _("Low")
    MEDIUM = "medium", _("Medium")
    HIGH = "high", _("High")
    IRREVERSIBLE = "irreversible", _("Irreversible")


class CardKind(StrEnum):
    """The kinds of cards (spec 8.2, 0.5.3, 5.10), each with a class in `cards.kinds`."""

    PLAN = "plan"
    STANDING = "standing"
    GATE = "gate"
    BATCH_REVIEW = "batch_review"
    DRAFT_REVIEW = "draft_review"
    DECISION = "decision"
    SUGGESTION = "suggestion"
    AUTONOMY_THRESHOLD = "autonomy_threshold"
    POST_EXECUTION = "post_execution"
    SKILL_INSTALL = "skill_install"
    BUDGET = "budget"
    CONNECTION = "connection"
    PERMISSION_ESCALATION = "permission_escalation"
    CONNECTION_FAILURE = "connection_failure"


class CardStatus(TextChoices):
    """open → assigned → decided, expired or withdrawn; only the first two can still be answered."""

    OPEN = "open"
    ASSIGNED = "assigned"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class CardSort(TextChoices):
    """In which order cards are listed."""

    NEWEST = "newest", _("Newest")
    DEADLINE = "deadline", _("Nearest deadline")


class Deciders(TextChoices):
    """Whose approval counts."""

    APPROVERS = "approvers", _("Owners and approvers")
    OWNERS = "owners", _("Owners only")


class PasskeyRule(TextChoices):
    """When an approval needs a passkey."""

    REGISTERED = "registered", _("For high and irreversible risk, from people who have one")
    REQUIRED = "required", _("Always; people without a passkey can't approve")


class ChallengePurpose(TextChoices):
    """What a passkey is used for: to register it, to open the page of a decision link, to answer a card, or for one
    action of an operator that lets an agent of the safety loop continue."""

    REGISTER = "register"
    STEP_UP = "step_up"
    LINK_OPEN = "link_open"
    HOLD_ALLOW = "hold_allow"
    HOLD_CODE = "hold_code"
    HOLD_TOKEN = "hold_token"


CARD_PURPOSES = (ChallengePurpose.STEP_UP, ChallengePurpose.LINK_OPEN)
ACTION_PURPOSES = (ChallengePurpose.HOLD_ALLOW, ChallengePurpose.HOLD_CODE, ChallengePurpose.HOLD_TOKEN)


class Pace(TextChoices):
    """Who waits for the answer, which decides how long a card stays open (spec 8.1)."""

    PLAN = "plan", _("Planned work is waiting")
    GATE = "gate", _("A conversation is waiting")
    CALM = "calm", _("Nothing is waiting")


class PauseTrigger(TextChoices):
    """The trigger of the gates at which something waits; the values are those of `gates.enums.GateTrigger`."""

    INPUT = "every_user_message", _("Message")
    OUTPUT = "every_agent_response", _("Answer")
    TOOL = "on_tool_call", _("Call")
    STEP = "after_step", _("Step")


class PauseState(TextChoices):
    """waiting → approved, declined, expired or withdrawn; an approved pause is resumed once."""

    WAITING = "waiting"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    RESUMED = "resumed"


class Withdrawal(TextChoices):
    """Why a card was withdrawn before it was decided."""

    REQUESTER = "requester", _("No longer needed")
    HANDOFF = "handoff", _("A teammate took over the conversation")
    CANCELLED = "cancelled", _("The work was stopped")
    REPLACED = "replaced", _("Replaced by a newer card")
    OUTDATED = "outdated", _("The records have changed since, so this can't be undone")
    STAFF = "staff", _("Withdrawn by a teammate")


class ApprovalState(TextChoices):
    """Whether an approval is still valid, and if not, why."""

    HOLDS = "holds"
    USED_UP = "used_up"
    RAN_OUT = "ran_out"
    TAKEN_BACK = "taken_back"
    VOID = "void"


class Reason(TextChoices):
    """Why an approval token was accepted or not; the values are stable and safe to show to staff."""

    OK = "ok"
    TOKEN_UNKNOWN = "token_unknown"
    TOKEN_REVOKED = "token_revoked"
    KEY_RETIRED = "key_retired"
    KEY_REVOKED = "key_revoked"
    CONDITION_UNKNOWN = "condition_unknown"
    INVALID_SIGNATURE = "invalid_signature"
    NOT_APPROVED = "not_approved"
    SUBJECT_MISMATCH = "subject_mismatch"
    PLAN_HASH_MISMATCH = "plan_hash_mismatch"
    TOKEN_EXPIRED = "token_expired"
    EXECUTION_LIMIT_REACHED = "execution_limit_reached"
    EXECUTION_LIMIT_EXCEEDED = "execution_limit_exceeded"
    TOKEN_NOT_CONSUMED = "token_not_consumed"
    STANDING_REQUIRES_SPAWNED_TASK = "standing_requires_spawned_task"
    STANDING_PARENT_MISMATCH = "standing_parent_mismatch"
    SPAWN_NOT_ALLOWED = "spawn_not_allowed"
    SPAWN_POLICY_MISMATCH = "spawn_policy_mismatch"
    SPAWN_OUTSIDE_POLICY = "spawn_outside_policy"


class AlertWay(TextChoices):
    """How a member is notified of new cards."""

    OFF = "off", _("Not at all")
    EMAIL = "email", _("Email me if I haven't responded")
    PUSH = "push", _("Push, and email me if I haven't responded")
