from django.db.models import TextChoices


class AuditEvent(TextChoices):
    """Everything that can be written down, grouped by the room that writes it. Names are for ever."""

    # kernel, tenants
    PLATFORM_SCOPE_ENTERED = "platform_scope_entered", "Somebody looked at more than one tenant"
    TENANT_CREATED = "tenant_created", "A tenant was created"
    TENANT_CHANGED = "tenant_changed", "A tenant's name or time zone was changed"
    MEMBER_ADDED = "member_added", "A person became a member"
    ROLE_CHANGED = "role_changed", "A member's role was changed"
    DEPLOYMENT_CREATED = "deployment_created", "A deployment was created"
    DEPLOYMENT_CHANGED = "deployment_changed", "A deployment was changed"
    API_KEY_CREATED = "api_key_created", "An API key was made"
    API_KEY_REVOKED = "api_key_revoked", "An API key was revoked"
    ADMIN_CHANGED = "admin_changed", "Something was changed in the administration"
    STAFF_LOGGED_IN = "staff_logged_in", "A member of staff logged in"

    # bus
    MESSAGE_DEAD = "message_dead", "A message failed for good"

    # gates
    GATE_SAVED = "gate_saved", "A gate was put in place or changed"
    GATE_BLOCKED = "gate_blocked", "A gate said no"
    GATE_ASKED = "gate_asked", "A gate wants a person's approval"
    GATE_MUTATION = "gate_mutation", "A gate rewrote a text or an argument"
    REJECTED_MUTATION = "rejected_mutation", "A gate tried to rewrite what it may not"
    QUALITY_GATE = "quality_gate", "A quality gate gave its opinion"
    QUALITY_LANE_VIOLATION = "quality_lane_violation", "A quality gate tried to decide"

    # guard
    RUN_STARTED = "run_started", "A guarded run began"
    RUN_CLOSED = "run_closed", "A guarded run ended"
    TOOL_CALL = "tool_call", "A call passed the guard or was refused there"
    HALT_REQUESTED = "halt_requested", "Somebody asked a run to stop"
    HALTED = "halted", "A run was stopped"
    COST_CAP_REACHED = "cost_cap_reached", "A spending limit was reached"
    BUDGET_REACHED = "budget_reached", "A limit other than money was reached"

    # memory
    COLLECTION_OPENED = "collection_opened", "A collection of documents was opened"
    COLLECTION_CHANGED = "collection_changed", "A collection of documents was changed"
    DOCUMENT_STORED = "document_stored", "A document was read into the knowledge"
    DOCUMENT_FORGOTTEN = "document_forgotten", "A document was removed from the knowledge"

    # skills
    SKILL_INSTALLED = "skill_installed", "A version of a skill was installed"
    RECORD_CHANGED = "record_changed", "A record was changed by an approved action"

    # sessions
    SESSION_STARTED = "session_started", "A conversation began"
    MESSAGE_ACCEPTED = "message_accepted", "A visitor's message was stored"
    TURN_COMPLETED = "turn_completed", "The bot answered"
    TURN_SUPPRESSED = "turn_suppressed", "The bot's answer was dropped because a person had taken over"
    TURN_FAILED = "turn_failed", "A turn could not be completed"
    MODEL_FELL_BACK = "model_fell_back", "The model failed and the built-in one answered"
    MEMORY_OPS_DROPPED = "memory_ops_dropped", "The model asked to remember something and was not obeyed"
    IDENTITY_THROTTLED = "identity_throttled", "Somebody's identity was not checked: too many tries, or no way to count"
    IDENTITY_FAILED = "identity_failed", "Somebody tried to prove who they are and failed"
    LEVEL_RAISED = "level_raised", "A visitor proved who they are"
    LEVEL_EXPIRED = "level_expired", "A visitor's level ran out"
    TAKEN_OVER = "taken_over", "A person took the conversation over"
    HANDED_BACK = "handed_back", "A person gave the conversation back to the bot"
    PERSON_WANTED = "person_wanted", "A visitor asked for a person"
    STAFF_REPLIED = "staff_replied", "A person replied"

    # approvals
    CARD_OPENED = "card_opened", "A person was asked to decide"
    CARD_DECIDED = "card_decided", "A person decided"
    CARD_EXPIRED = "card_expired", "Nobody decided in time"
    APPROVAL_TOKEN_ISSUED = "approval_token_issued", "An approval was signed"
    APPROVAL_VERIFIED = "approval_verified", "An approval was spent"
    APPROVAL_REFUSED = "approval_refused", "An approval did not hold"

    # work
    WORK_PROPOSED = "work_proposed", "Work was planned"
    WORK_REFUSED = "work_refused", "A plan was not accepted"
    WORK_MOVED = "work_moved", "Work went on"
    WORK_ATTEMPTED = "work_attempted", "An attempt ended"
    WORK_NOT_APPROVED = "execution_blocked_no_approval", "Work was stopped: its approval did not hold"
    ARTIFACT_REF_MISMATCH = "artifact_ref_mismatch", "An agent named files that its calls did not leave"
