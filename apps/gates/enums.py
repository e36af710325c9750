"""Enums of the gates room (contract silas 2)."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class GateTrigger(TextChoices):
    EVERY_USER_MESSAGE = "every_user_message"
    EVERY_AGENT_RESPONSE = "every_agent_response"
    AFTER_STEP = "after_step"
    ON_TOOL_CALL = "on_tool_call"
    ON_CONTENT = "on_content"


class GateProvider(TextChoices):
    GUARDRAILS_AI = "guardrails_ai"
    PREDICATE = "predicate"
    LLM = "llm"
    SCRIPT = "script"
    CUSTOM = "custom"


class GateType(TextChoices):
    NUMERIC_RANGE = "numeric_range"
    STRING_MATCH = "string_match"
    REGEX = "regex"
    FILE_VALID = "file_valid"
    APPROVAL_ALWAYS = "approval_always"
    CUSTOM_CHECK = "custom_check"


class GateLane(TextChoices):
    POLICY = "policy"
    QUALITY = "quality"


class GateAction(TextChoices):
    CONTINUE = "continue"
    BLOCK = "block"
    REQUIRE_APPROVAL = "require_approval"


class EscalationKind(TextChoices):
    REPORT = "report"
    ESCALATE_HUMAN = "escalate_human"
    TRANSFER_TO_QUEUE = "transfer_to_queue"
    SUPPRESS_AND_REPHRASE = "suppress_and_rephrase"
    SUPPRESS_AND_ESCALATE = "suppress_and_escalate"
    RESPOND = "respond"
    SPAWN_TASK = "spawn_task"
    RETRY = "retry"


class GateStatus(TextChoices):
    """State of a gate: never activated, with an active version, or deactivated."""

    DRAFT = "draft", _("Draft")
    ACTIVE = "active", _("Active")
    RETIRED = "retired", _("Retired")


class GateCode(TextChoices):
    """Reason of a result: stable codes for audit entries and tests. `GateResult.reason` is the text for people."""

    PASSED = "passed", _("Passed")
    NO_CLAIM = "no_claim", _("Not identified")
    APPROVAL_ALWAYS = "approval_always", _("Always needs approval")
    NEEDS_APPROVAL = "needs_approval", _("Needs approval")
    NOT_A_NUMBER = "not_a_number", _("Not a number")
    OUT_OF_RANGE = "out_of_range", _("Out of range")
    NOT_ALLOWED = "not_allowed", _("Not allowed")
    NO_MATCH = "no_match", _("No match")
    TOO_SHORT = "too_short", _("Too short")
    TOO_LONG = "too_long", _("Too long")
    KEYWORD_FOUND = "keyword_found", _("Blocked keyword")
    KEYWORD_MISSING = "keyword_missing", _("Required keyword missing")
    PATH_FORBIDDEN = "path_forbidden", _("Path not allowed")
    FILE_MISSING = "file_missing", _("File not found")
    FILE_TOO_LARGE = "file_too_large", _("File too large")
    CHECK_FAILED = "check_failed", _("Check failed")
    SCRIPT_FAILED = "script_failed", _("Script failed")
    FOUND = "found", _("Found")
    LLM_SAID = "llm_said", _("Blocked by the model")
    LLM_ERROR = "llm_error", _("Model not available")
    TOO_MANY = "too_many", _("Too many checks")
    TOO_LATE = "too_late", _("Out of time")
    UNREADABLE = "unreadable", _("Unreadable")
    PROVIDER_MISSING = "provider_missing", _("Unknown check")
    PROVIDER_FAILED = "provider_failed", _("Check not available")
    MISCONFIGURED = "misconfigured", _("Misconfigured")
