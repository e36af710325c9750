"""Closed word lists of the approvals room (contract silas 2, spec 0.5.2, 5.11)."""

from django.db.models import TextChoices


class ApprovalScope(TextChoices):
    FULL_PLAN = "full_plan"
    SINGLE_STEP = "single_step"
    STEP_RANGE = "step_range"
    TOOL_TYPE = "tool_type"
    SKILL_INSTALL = "skill_install"
    CREDENTIAL_USE = "credential_use"
    BUDGET = "budget"
    SELF_UPDATE = "self_update"
    CONNECTION_ACT = "connection_act"
    CONNECTION_MANAGE = "connection_manage"
    AUTONOMY_THRESHOLD = "autonomy_threshold"
    STANDING = "standing"


class ApprovalVerdict(TextChoices):
    APPROVED = "approved"
    DECLINED = "declined"
    EDIT_REQUESTED = "edit_requested"
    CONDITIONAL = "conditional"


class ApprovalStrength(TextChoices):
    TAP = "tap"


class Risk(TextChoices):
    """Declared from the lightest to the gravest; `rules.risk_of` relies on the order."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    IRREVERSIBLE = "irreversible"


class CardKind(TextChoices):
    PLAN = "plan"
    STANDING = "standing"


class CardStatus(TextChoices):
    OPEN = "open"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class Reason(TextChoices):
    """Why an approval token was accepted or not; the values are stable and safe to show to staff."""

    OK = "ok"
    TOKEN_UNKNOWN = "token_unknown"
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
