"""The registry of error codes: every code that a `SilasError`, an error of the API or an error frame can carry.

A code is stable: clients compare it. Each member has the HTTP status that it is answered with unless the place that
raises it says another one, and the sentence for people where it is always the same.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


def _(text: str) -> str:
    """Mark a text for translation, as Django's `gettext_noop` does: a sandbox imports this module without Django."""
    return text


class ErrorCode(StrEnum):
    """A machine-readable code; as text it is its value, such as `not_found`."""

    status: int
    text: str

    def __new__(cls, value: str, status: int = 400, text: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.status = status
        member.text = text
        return member

    ACCOUNT_EXISTS = "account_exists", 409
    ACCOUNT_NOT_LINKED = (
        "account_not_linked",
        403,
        _("This account isn't linked to a member. Nothing was decided. Link it in the console, under Account."),
    )
    ADDRESS_REFUSED = "address_refused", 422
    ALERT_MINUTES = "alert_minutes", 400
    ALREADY_PROCESSED = "already_processed", 409
    ALREADY_SET_UP = "already_set_up", 409, _("This installation is already set up. Log in instead.")
    ANSWER_NOT_KEPT = (
        "answer_not_kept",
        409,
        _("This request was carried out. Its answer is not kept."),
    )
    ANSWER_UNKNOWN = "answer_unknown", 422, _("Answer with done or trouble.")
    ANSWERED_ALREADY = "answered_already", 409
    API_KEY_ENDED = "api_key_ended", 409, _("This API key is revoked or expired. Create a new one.")
    APPROVER_REQUIRED = "approver_required", 403, _("Only an owner or an approver can decide this.")
    ARTIFACTS_TOO_LARGE = "artifacts_too_large", 400, _("The files that this call left are too large to store.")
    ASSIGNEE_UNFIT = "assignee_unfit", 409
    ASSISTANCE_CANCELLED = "assistance_cancelled", 409, _("Cancelled.")
    ASSISTANCE_FAILED = "assistance_failed", 502, _("The model didn't answer. Your draft is unchanged. Try again.")
    ASSISTANCE_LIMIT = "assistance_limit", 409, _("A spending limit is reached.")
    ASSISTANCE_NOTHING = "assistance_nothing", 409
    ASSISTANCE_OFF = "assistance_off", 409, _("This assistance is switched off for this chatbot.")
    ASSISTANCE_WITHHELD = "assistance_withheld", 409, _("One of your rules withholds this text.")
    ATTEMPT_NUMBER_MISSING = "attempt_number_missing", 422
    AUTHENTICATION_FAILED = "authentication_failed", 401
    AUTONOMY_OFF = "autonomy_off", 409
    AUTONOMY_SETTINGS = "autonomy_settings", 422
    BAD_ARGUMENTS = "bad_arguments", 400
    BAD_CALL_BLOCK = "bad_call_block", 400
    BAD_COLOUR = "bad_colour", 400, _("Choose a color from the list.")
    BAD_HOLDER = "bad_holder", 400, _("A limit is for the company, or for one chatbot, visitor or task.")
    BAD_LIMIT = "bad_limit", 400, _("A limit is an amount of US dollars of 0 or more.")
    BAD_NAME = "bad_name", 400
    BAD_PROVIDER_KEY = "bad_provider_key", 422
    BAD_RULE = "bad_rule", 400
    BAD_SCHEDULE = "bad_schedule", 400, _("A schedule needs five cron fields and must be due at some time.")
    BAD_SLA_POLICY = "bad_sla_policy", 400
    BAD_STEPS = "bad_steps", 400
    BAD_TEAM = "bad_team", 400
    BAD_TEMPLATE = "bad_template", 400
    BAD_TIME = "bad_time", 400
    BAD_VIEW = "bad_view", 400, _("This page has no such filter.")
    BATCH_ITEMS = "batch_items", 400, _("A batch names each of its items once.")
    BATCH_SETTLED = "batch_settled", 409, _("This batch has already been decided.")
    BEGIN_ANEW = "begin_anew", 403
    BUNDLE_CHANGED = "bundle_changed", 409, _("This is not the file that was checked. Check it again.")
    BUNDLE_REFUSED = "bundle_refused", 422
    BUNDLE_TOO_LARGE = "bundle_too_large", 413
    BUSY_RETRY = "busy_retry", 400
    CALL_LOST = "call_lost", 409
    CARD_BODY_UNFIT = "card_body_unfit", 400
    CARD_CHANGED = "card_changed", 409
    CARD_DAMAGED = "card_damaged", 409, _("This card is out of date.")
    CARD_DECIDED = "card_decided", 409
    CARD_EXPIRED = "card_expired", 409
    CARD_FORWARDED = "card_forwarded", 403, _("This request was sent to someone else. Nothing was decided.")
    CARD_INCOMPLETE = "card_incomplete", 400
    CARD_KIND_UNKNOWN = "card_kind_unknown", 400, _("Unknown kind of card.")
    CARD_MISMATCH = "card_mismatch", 409, _("The approved card has changed since it was approved.")
    CARD_NOT_YOURS = "card_not_yours", 409, _("Please verify your identity again, then answer this.")
    CARD_PAYLOAD_UNFIT = "card_payload_unfit", 400
    CARD_SCOPE_UNFIT = "card_scope_unfit", 400
    CARD_SETTLED = "card_settled", 409, _("This card was already decided.")
    CARD_TAKES_NO_QUESTION = "card_takes_no_question", 409, _("No customer can be asked about this card.")
    CARD_TOO_LONG = "card_too_long", 400
    CARD_UNREADABLE = "card_unreadable", 400
    CARD_WITHDRAWN = "card_withdrawn", 409
    CHAIN_LOOP = "chain_loop", 409
    CHANGED_MEANWHILE = "changed_meanwhile", 412, _("This has changed since you read it. Load it again.")
    CHANNEL_REFUSED = "channel_refused", 502, _("The provider refused the connection. Check the settings.")
    CHANNEL_SETTINGS = "channel_settings", 400, _("Some settings are missing or invalid.")
    CHOICE_UNKNOWN = "choice_unknown", 409, _("This card doesn't offer that answer.")
    CLIENT_KEY_INVALID = (
        "client_key_invalid",
        422,
        _("This isn't an Ed25519 public key in hexadecimal, or no kind of approval was selected."),
    )
    CLIENT_KEY_KNOWN = "client_key_known", 409, _("This key is registered already. Use a new one.")
    CLIENT_KEY_RIGHTS = (
        "client_key_rights",
        403,
        _("The program's key may not decide this kind of approval, or not at this risk."),
    )
    COLLECTION_MISSING = "collection_missing", 409, _("The collection that this would be added to no longer exists.")
    COMPANY_CLOSED = "company_closed", 503, _("This company is closed for maintenance. Try again later.")
    COMPANY_MOVED = "company_moved", 410, _("This company has moved. Reload the page to reach it.")
    CONDITIONS_MISSING = "conditions_missing", 400, _("Enter your conditions.")
    CONDITIONS_NOT_ALLOWED = (
        "conditions_not_allowed",
        400,
        _("An approval can't have conditions. Answer that it depends, or edit the request."),
    )
    CONNECTION_AMBIGUOUS = "connection_ambiguous", 409
    CONNECTION_MISSING = "connection_missing", 409
    CONNECTION_PERMISSION = "connection_permission", 409
    CONNECTION_SETTLED = "connection_settled", 409
    CONNECTION_UNFIT = "connection_unfit", 422
    CONSENT_REQUIRED = "consent_required", 403
    CONSOLE_REQUIRED = (
        "console_required",
        409,
        _("This request can't be decided here. Nothing was decided. Open it in the console."),
    )
    CONSTRAINTS_MISSING = "constraints_missing", 422
    CONTACT_CHANGED = "contact_changed", 412, _("This contact has changed since you read it. Load it again.")
    CONTACT_FIELD = "contact_field", 400
    CONTACT_KNOWN = "contact_known", 409, _("Another contact has this customer ID. Merge the two instead.")
    CONTACT_MERGE_ENDED = "contact_merge_ended", 409, _("This merge can't be undone any more.")
    CONTACT_MERGE_SELF = "contact_merge_self", 409, _("Choose another contact to merge with.")
    CONTENT_MISSING = "content_missing", 422
    CONTEXT_BUDGET_INVALID = "context_budget_invalid", 400
    CONTEXT_PINNED_TOO_LARGE = "context_pinned_too_large", 400
    CONTEXT_PROFILE_INVALID = "context_profile_invalid", 400
    CONTEXT_PROFILE_UNKNOWN = "context_profile_unknown", 400
    CONVERSATION_CHANGED = "conversation_changed", 412, _("This conversation has changed. Reload it and try again.")
    CONVERSATION_FULL = "conversation_full", 409, _("This conversation is very long. Please start a new one.")
    CONVERSATION_OF_OTHER = "conversation_of_other", 409, _("This conversation is another customer's. Start a new one.")
    CREDENTIAL_GONE = "credential_gone", 409, _("The keyring no longer has this credential.")
    CREDENTIALS_UNREADABLE = "credentials_unreadable", 400, _("The script handed back credentials that cannot be read.")
    DECISION_LINK_EXPIRED = (
        "decision_link_expired",
        409,
        _("This link has expired. Nothing was decided. Ask for a new link, or open the card in the console."),
    )
    DECISION_LINK_SPENT = (
        "decision_link_spent",
        409,
        _("This link was already used. Nothing else was decided."),
    )
    DEPLOYMENT_MISSING = "deployment_missing", 400, _("Choose a deployment whose messages are tested.")
    DEPLOYMENTS_FULL = "deployments_full", 409
    DRAFT_CHANGED = "draft_changed", 409, _("Someone else has changed this draft. Reload it and try again.")
    DRAFT_FAILED = "draft_failed", 409, _("The draft could not be created.")
    DRAFT_FILE = "draft_file", 422, _("A draft contains SKILL.md and up to 24 text files in its folders.")
    DRAFT_NAME = "draft_name", 422, _("Use lowercase letters, digits and single hyphens.")
    DRAFT_WISH = "draft_wish", 422
    EDIT_CHANGES_NOTHING = "edit_changes_nothing", 400, _("The card already asks for this.")
    EDIT_CHANGES_SUBJECT = "edit_changes_subject", 400, _("An edit can't change what the card is about.")
    EDIT_OUTSIDE_PLAN = "edit_outside_plan", 400, _("Only the values of the planned calls can be edited.")
    EDIT_REFUSED = "edit_refused", 409
    EDIT_UNFIT = "edit_unfit", 409
    ERASURE_RUNNING = "erasure_running", 409, _("This person's data is being erased. Try again when that has ended.")
    ERROR = "error", 500
    ERROR_CODE_MISSING = "error_code_missing", 422
    ERROR_HEADERS_MISSING = "error_headers_missing", 422
    EVENTS_GONE = "events_gone", 410
    EXPORT_TOO_LARGE = "export_too_large", 422
    FIELD_WRONG = "field_wrong", 422
    FILE_KIND = "file_kind", 400, _("This file type isn't supported.")
    FILE_TOO_LARGE = "file_too_large", 413, _("This file is too large.")
    FILES_FULL = "files_full", 409, _("You can't send any more files in this conversation.")
    FINGERPRINT_DIFFERS = "fingerprint_differs", 409
    FORBIDDEN = "forbidden", 403, _("This conversation isn't available.")
    FORBIDDEN_ROLE = "forbidden_role", 403
    FORBIDDEN_SCOPE = "forbidden_scope", 403
    FORM_CHANGED = "form_changed", 409, _("This form has changed in the meantime. Here is the new version.")
    FORM_REQUIRED = "form_required", 409, _("Please fill in the form first.")
    FORM_UNREADABLE = "form_unreadable", 422, _("This page is out of date. Reload it and try again.")
    FORMAT_UNKNOWN = "format_unknown", 422
    FREETEXT_NOT_WANTED = "freetext_not_wanted", 409
    FREETEXT_TOO_LONG = "freetext_too_long", 400
    GAP_SETTLED = "gap_settled", 409, _("This gap was already answered or dismissed. Reopen it first.")
    GATE_BLOCKED = "gate_blocked", 400
    GATE_CHANGED = (
        "gate_changed",
        409,
        _("This gate was changed in the meantime. Review the newest version first; your change was not saved."),
    )
    GATE_INVALID = "gate_invalid", 422
    GATE_UNCHANGED = "gate_unchanged", 409, _("This version is already active.")
    GIT_MISSING = "git_missing", 503, _("Git isn't installed on this machine.")
    GOAL_ESCALATION_CIRCLE = "goal_escalation_circle", 400
    GOAL_ESCALATION_UNKNOWN = "goal_escalation_unknown", 400
    GOAL_FALLBACK_MISSING = "goal_fallback_missing", 400
    GOAL_GATE_TWICE = "goal_gate_twice", 400
    GOAL_GATE_UNKNOWN = "goal_gate_unknown", 400
    GOAL_INSTRUCTION_MISSING = "goal_instruction_missing", 400
    GOAL_LEVEL_ORDER = "goal_level_order", 400
    GOAL_MISSING = "goal_missing", 400, _("choose a file or paste its text.")
    GOAL_NO_TEXT = "goal_no_text", 400, _("this isn't UTF-8 text.")
    GOAL_QUEUE_MISSING = "goal_queue_missing", 400
    GOAL_TOO_LONG = "goal_too_long", 400
    GOAL_TOO_MANY_GATES = "goal_too_many_gates", 400
    GOAL_TOOL_UNKNOWN = "goal_tool_unknown", 400
    GUARDRAILS_FAILED = "guardrails_failed", 503
    HIDDEN_CHARACTERS = "hidden_characters", 400
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused", 409, _("This idempotency key was used with another body.")
    IDENTITY_KEY_EXISTS = "identity_key_exists", 409
    IMPORT_BUSY = "import_busy", 409, _("Other imports are running. Try again when one of them is done.")
    IMPORT_REFUSED = "import_refused", 422
    INVALID = "invalid", 400, _("A field is missing or wrong.")
    INVALID_ANSWERS = "invalid_answers", 400, _("Please check the highlighted fields.")
    INVALID_DEPLOYMENT = "invalid_deployment", 400
    INVALID_EMAIL = "invalid_email", 400
    INVALID_EXPIRY = "invalid_expiry", 422, _("Choose a time in the future.")
    INVALID_FORM = "invalid_form", 400
    INVALID_FRAME = "invalid_frame", 400
    INVALID_IDENTITY_KEY = "invalid_identity_key", 400
    INVALID_MESSAGE_KEY = "invalid_message_key", 400
    INVALID_NAME = "invalid_name", 400, _("A collection's name is up to 60 letters, digits, hyphens and underscores.")
    INVALID_OFFERS = "invalid_offers", 400
    INVALID_OVERRIDES = "invalid_overrides", 422, _("A draft names settings that a simulation does not know.")
    INVALID_PERSONA = "invalid_persona", 422, _("An axis is unknown or its value is out of range.")
    INVALID_PROVIDER = "invalid_provider", 422
    INVALID_RATING = "invalid_rating", 400, _("Please choose one of the options.")
    INVALID_SCENARIO = "invalid_scenario", 422, _("This scenario is not complete or has mistakes.")
    INVALID_SHARE = "invalid_share", 422, _("Choose a share from 1 to 100 percent; a first release gets all.")
    INVALID_TEXT = "invalid_text", 400
    INVITATION_ENDED = "invitation_ended", 409, _("This invitation is no longer valid.")
    IT_REQUEST_MISSING = "it_request_missing", 409, _("There's no draft for an IT department.")
    IT_REQUEST_UNFIT = "it_request_unfit", 422
    KEY_ACTIVE = "key_active", 409, _("Replace this key first. Then you can revoke it.")
    KEY_RETIRED = "key_retired", 409
    KEY_REVOKED = "key_revoked", 409, _("This key is already revoked.")
    KEY_UNREADABLE = "key_unreadable", 422, _("A public key has 64 hexadecimal characters.")
    KEYRING_MISSING = "keyring_missing", 409, _("The keyring library is not installed here.")
    KEYRING_UNAVAILABLE = "keyring_unavailable", 503
    KIND_NOT_FROM_SENDER = "kind_not_from_sender", 422
    KIND_NOT_ON_QUEUE = "kind_not_on_queue", 422
    KNOWLEDGE_BUSY = "knowledge_busy", 400
    KNOWLEDGE_CHANGED = "knowledge_changed", 400
    KNOWLEDGE_LATE = "knowledge_late", 400, _("The request for this change was withdrawn.")
    KNOWLEDGE_REFUSED = "knowledge_refused", 400
    LAST_OWNER = "last_owner", 409
    LEASE_LOST = "lease_lost", 409
    LINE_INVALID = "line_invalid", 400
    LINKAGE_MISSING = "linkage_missing", 409
    MACRO_CHANGED = "macro_changed", 409, _("This macro was changed. Check what it does now, then run it again.")
    MEMBER_EXISTS = "member_exists", 409, _("This person is already a member.")
    MEMORY_ARCHIVED = "memory_archived", 409, _("This memory is archived, so it can't be pinned.")
    MEMORY_CARD_NEEDED = "memory_card_needed", 409, _("The bot's preferences are confirmed in Review, with a card.")
    MEMORY_EXTERNAL = (
        "memory_external",
        409,
        _("This memory comes from outside your company, so it can't be confirmed."),
    )
    MEMORY_FIXED = "memory_fixed", 409, _("This memory never changes.")
    MEMORY_INSTRUCTIONS = (
        "memory_instructions",
        422,
        _("This text reads like an instruction to the bot. Write down what is true instead."),
    )
    MEMORY_RAW = "memory_raw", 409, _("This is kept word for word, so it can only be deleted.")
    MEMORY_TEXT = "memory_text", 422, _("Enter a text of up to 2,000 characters.")
    MEMORY_WRITES_REACHED = "memory_writes_reached", 409, _("This run has used its limit of proposals.")
    MESSAGE_KEY_EXISTS = "message_key_exists", 409
    METHOD_NOT_ALLOWED = "method_not_allowed", 405, _("Use POST.")
    NAME_TAKEN = "name_taken", 409, _("This name is already in use.")
    NEEDS_CODE = "needs_code", 409, _("Only a code can lift this hold.")
    NO_MODEL = "no_model", 409
    NO_NAME = "no_name", 409, _("Enter a name for the key.")
    NO_OWNER = "no_owner", 409
    NO_PLACES = "no_places", 400, _("No network address is allowed for checks (SILAS_CHECK_PLACES).")
    NO_SECOND_FACTOR = "no_second_factor", 409, _("Set up an app or a passkey first.")
    NO_SETUP = "no_setup", 409, _("There is no setup to confirm. Start over.")
    NOT_A_CONNECTION = "not_a_connection", 409, _("This skill doesn't connect an account.")
    NOT_A_MEMBER = "not_a_member", 400, _("Only members can sign messages.")
    NOT_A_MODEL_RUN = "not_a_model_run", 403, _("This can only run as a guarded call.")
    NOT_ACCEPTABLE = "not_acceptable", 406
    NOT_APPROVED = "not_approved", 409
    NOT_AUTHENTICATED = "not_authenticated", 401
    NOT_CANCELLABLE = "not_cancellable", 409, _("Goals can't be cancelled. Change the goal instead.")
    NOT_DEAD = "not_dead", 409, _("This message has been retried or dropped already.")
    NOT_FOUND = "not_found", 404, _("Not found. It may have been deleted, or you don't have access to it.")
    NOT_HELD = "not_held", 409
    NOT_JSON = "not_json", 400, _("A frame must be JSON text.")
    NOT_OPTED_IN = "not_opted_in", 403
    NOT_OVER = "not_over", 409, _("This run isn't over yet.")
    NOT_PARKED = "not_parked", 409, _("Only a parked goal can be resumed.")
    NOT_QUARANTINED = "not_quarantined", 409, _("This task isn't paused.")
    NOT_TAKEN_OVER = "not_taken_over", 409, _("Take over the conversation before you reply.")
    NOT_YOURS = "not_yours", 409
    NOTHING_CHOSEN = "nothing_chosen", 400
    NOTHING_IN_IT = "nothing_in_it", 422
    NOTHING_LEFT = "nothing_left", 409
    NOTHING_SAID = "nothing_said", 409, _("There are no messages yet.")
    NOTHING_TICKED = "nothing_ticked", 400, _("Select conversations first.")
    NOTHING_TO_REMOVE = "nothing_to_remove", 409, _("The last run left nothing to remove.")
    OAUTH_APP_ENDED = "oauth_app_ended", 409, _("This app is revoked, or has no secret.")
    OAUTH_REDIRECT_INVALID = "oauth_redirect_invalid", 422, _("An app without a secret needs a redirect address.")
    OAUTH_REQUEST_INVALID = (
        "oauth_request_invalid",
        400,
        _("The app that sent you here isn't registered with this address. Nothing was shared with it."),
    )
    OAUTH_SCOPES_INVALID = "oauth_scopes_invalid", 422, _("Select permissions that an app can have.")
    ORIGIN_NOT_ALLOWED = "origin_not_allowed", 403, _("This chat isn't allowed on this website.")
    ORIGIN_UNKNOWN = "origin_unknown", 422, _("Enter the id of a task or session.")
    OUT_OF_TIME = "out_of_time", 409, _("The time for this set-up has run out.")
    OUTCOME_UNKNOWN = (
        "outcome_unknown",
        409,
        _("The first request with this idempotency key ended without an answer. Check what it did."),
    )
    OWN_REQUEST = "own_request", 403, _("You requested this yourself. Another person has to approve it.")
    OWNED_BY_OTHER = "owned_by_other", 409
    OWNER_REQUIRED = "owner_required", 403, _("Only an owner can approve this.")
    OWNERS_ONLY = "owners_only", 403
    PACKAGE_EXTRA_FILE = "package_extra_file", 422, _("The package contains a file that isn't signed.")
    PACKAGE_INCOMPLETE = "package_incomplete", 422
    PACKAGE_REPLAYED = (
        "package_replayed",
        409,
        _("A newer package of this skill from this publisher was already imported."),
    )
    PACKAGE_SIGNATURE = "package_signature", 422, _("The package isn't signed with the key it names.")
    PACKAGE_TAMPERED = "package_tampered", 422, _("A file of the package was changed after it was signed.")
    PACKAGE_UNREADABLE = "package_unreadable", 422
    PARENT_OVER = "parent_over", 409
    PARSE_ERROR = "parse_error", 400
    PART_ELSEWHERE = "part_elsewhere", 400
    PART_UNREADABLE = "part_unreadable", 400
    PASSKEY_COUNTER = "passkey_counter", 409
    PASSKEY_ELSEWHERE = "passkey_elsewhere", 409
    PASSKEY_KNOWN = "passkey_known", 409
    PASSKEY_MISSING = "passkey_missing", 403, _("This requires a passkey. Add one in your account first.")
    PASSKEY_NEEDS_A_NAME = "passkey_needs_a_name", 400
    PASSKEY_REFUSED = "passkey_refused", 409
    PAYLOAD_INCOMPLETE = "payload_incomplete", 400, _("The plan lacks fields that an approval binds.")
    PAYLOAD_MISSING = "payload_missing", 422
    PAYLOAD_NOT_CANONICAL = "payload_not_canonical", 400
    PAYLOAD_SHAPE = "payload_shape", 400, _("The payload doesn't match this approval scope.")
    PAYLOAD_WRONG = "payload_wrong", 422
    PERMISSION_DENIED = "permission_denied", 403
    PERMISSION_UNKNOWN = "permission_unknown", 422
    PERSON_NEEDED = "person_needed", 403, _("Only an owner who is logged in can accept a tool.")
    PICTURE_DIMENSIONS = "picture_dimensions", 400, _("The picture must be between 16 and 1024 pixels wide and high.")
    PICTURE_KIND = "picture_kind", 400, _("Choose a PNG, JPEG or WebP picture.")
    PICTURE_TOO_LARGE = "picture_too_large", 413, _("The picture must be 256 KB or less.")
    PLAN_CALL_TWICE = "plan_call_twice", 400, _("the plan asks for the same thing twice")
    PLAN_DEPENDENCY_CYCLE = "plan_dependency_cycle", 400
    PLAN_DEPENDENCY_MISSING = "plan_dependency_missing", 400
    PLAN_FIELD_INVALID = "plan_field_invalid", 400
    PLAN_FIELD_MISSING = "plan_field_missing", 400
    PLAN_FIELD_UNKNOWN = "plan_field_unknown", 400
    PLAN_FRONT_MATTER_INVALID = "plan_front_matter_invalid", 400
    PLAN_FRONT_MATTER_MISSING = "plan_front_matter_missing", 400
    PLAN_FRONT_MATTER_UNCLOSED = "plan_front_matter_unclosed", 400
    PLAN_GATE_NOT_ALLOWED = "plan_gate_not_allowed", 400
    PLAN_INVALID = "plan_invalid", 400, _("The edited plan is not a plan.")
    PLAN_MARKDOWN_MISSING = "plan_markdown_missing", 422
    PLAN_NOT_A_GOAL = "plan_not_a_goal", 400, _("Only a goal can be adopted.")
    PLAN_PROJECT_CALLS = "plan_project_calls", 400, _("A project makes no calls itself; put them in its tasks.")
    PLAN_TASK_NOT_A_TASK = "plan_task_not_a_task", 400
    PLAN_TASK_NOT_WRITTEN = "plan_task_not_written", 400
    PLAN_TASK_TWICE = "plan_task_twice", 400
    PLAN_TASK_UNLISTED = "plan_task_unlisted", 400
    PLAN_TASKS_BLOCK = (
        "plan_tasks_block",
        400,
        _("A plan must not contain a tasks block of its own, and must close its fences."),
    )
    PLAN_TASKS_MISSING = "plan_tasks_missing", 400, _("A project names its tasks.")
    PLAN_TOO_LONG = "plan_too_long", 400
    PLAN_TOO_MANY_CALLS = "plan_too_many_calls", 400
    PLAN_TOO_MANY_TASKS = "plan_too_many_tasks", 400
    PLAN_TYPE_NOT_ALLOWED = "plan_type_not_allowed", 400
    PLAN_WITHOUT_CALLS = "plan_without_calls", 400, _("the plan does not say what to do")
    PLANNING_MOVED = "planning_moved", 409, _("This planning has already ended or changed.")
    POLICY_CHANGED = "policy_changed", 409
    POLICY_INVALID = "policy_invalid", 422
    POLICY_NOT_CERTIFIED = "policy_not_certified", 409
    POLICY_NOT_OWN = "policy_not_own", 409, _("This API key has no policy of its own.")
    POLICY_PIN_FAILED = (
        "policy_pin_failed",
        503,
        _("The checkpoint file that records active policy outside the database (SILAS_CHECKPOINTS) can't be written."),
    )
    PRECEDENT_SETTLED = "precedent_settled", 409
    PROGRAM_ARGS = "program_args", 422, _("There are too many arguments, or one is too long or unreadable.")
    PROGRAM_PLACE = "program_place", 422
    PROGRAM_SCRIPT = "program_script", 422, _("The skill has no such script. Enter it as scripts/name.py.")
    PROPOSAL_EMPTY = "proposal_empty", 422, _("Write the text to keep.")
    PROPOSAL_QUARANTINED = "proposal_quarantined", 409, _("This was quarantined. Release it before you keep it.")
    PROPOSAL_SETTLED = "proposal_settled", 409, _("This was already decided.")
    PROPOSAL_TOO_LONG = "proposal_too_long", 422
    PROPOSAL_UNANSWERED = "proposal_unanswered", 422, _("This question has no answer yet. Write one to publish it.")
    PROVIDER_ACCOUNT = "provider_account", 403
    PROVIDER_DOMAIN = "provider_domain", 403
    PROVIDER_LOGIN = "provider_login", 403
    PROVIDER_NOT_A_MEMBER = "provider_not_a_member", 403
    PROVIDER_REFUSED = "provider_refused", 403
    PROVIDER_UNREACHABLE = "provider_unreachable", 502
    PROVIDER_UNVERIFIED = "provider_unverified", 403
    PUBLISHER_NAME = "publisher_name", 422, _("Enter the publisher's name.")
    PUSH_ADDRESS = "push_address", 400, _("We couldn't reach this push service.")
    PUSH_BROWSERS = "push_browsers", 409
    PUSH_KEYS = "push_keys", 400
    PUSH_OFF = "push_off", 409, _("Push notifications aren't set up on this installation.")
    QUARANTINED = "quarantined", 409
    QUESTION_WAITING = "question_waiting", 409, _("The customer was already asked and has not answered yet.")
    RATE_LIMITED = "rate_limited", 429
    RATING_SETTLED = "rating_settled", 409, _("This rating can no longer be changed.")
    READER_BUSY = "reader_busy", 503
    REASON_MISSING = "reason_missing", 400, _("Enter why you're revoking this approval.")
    RECORD_CHANGED = "record_changed", 409
    RECORD_EXISTS = "record_exists", 409, _("A record with this key already exists.")
    RECORDS_CHANGED = "records_changed", 400
    RELEASE_CHANGED = "release_changed", 409, _("This has changed since you opened the page. Check it again.")
    RELEASE_NOT_LIVE = "release_not_live", 409, _("This release is no longer live.")
    RELEASE_UNCHANGED = "release_unchanged", 409, _("Nothing has changed since the live release.")
    REPORT_OF_OTHER_SCRIPTS = "report_of_other_scripts", 400
    REPORT_UNREADABLE = "report_unreadable", 400
    REQUEST_IN_PROGRESS = "request_in_progress", 409, _("The first request with this key is still running.")
    SANDBOX_SPEC_INVALID = "sandbox_spec_invalid", 400
    SANDBOX_UNAVAILABLE = "sandbox_unavailable", 503
    SCHEDULER_DISABLED = "scheduler_disabled", 503, _("Automations are turned off for this company.")
    SCOPE_ERROR = "scope_error", 403
    SEAL_BROKEN = "seal_broken", 409, _("A sealed value could not be opened with this key.")
    SEARCH_KEY = "search_key", 422
    SEARCH_MODEL = "search_model", 422
    SEARCH_PROVIDER = "search_provider", 422, _("Choose one of the listed providers.")
    SEARCH_TERMS = "search_terms", 422
    SECOND_FACTOR_REQUIRED = "second_factor_required", 403
    SECRET_EXPIRED = "secret_expired", 409, _("This request has expired. Nothing was saved.")
    SECRET_INVALID = "secret_invalid", 400
    SECRET_NOT_THERE = "secret_not_there", 409, _("Nothing was submitted yet, or it was already collected.")
    SECRET_STORED_ALREADY = "secret_stored_already", 409, _("This has already been saved. Nothing was changed.")
    SECRET_UNFIT = "secret_unfit", 400, _("A secret has at least one character and at most 64 KiB.")
    SELECTION_UNFIT = "selection_unfit", 409
    SESSION_OVER = "session_over", 400
    SETUP_NOT_ASKING = "setup_not_asking", 409
    SETUP_OVER = "setup_over", 409
    SETUP_UNDER_WAY = "setup_under_way", 409, _("This connection is already being set up.")
    SIGNATURE_INVALID = (
        "signature_invalid",
        403,
        _("The signature doesn't belong to this answer, or the key may not sign it. Nothing was decided."),
    )
    SIGNATURE_STALE = "signature_stale", 409, _("The time that was signed is too far from now. Sign the answer again.")
    SIGNING_KEY_MISSING = "signing_key_missing", 403
    SIMULATION_EMPTY = "simulation_empty", 409, _("There is no scenario to simulate.")
    SIMULATION_ENDED = "simulation_ended", 409, _("This simulation has ended already.")
    SIMULATION_FOREIGN_SUITE = "simulation_foreign_suite", 409, _("This suite belongs to another chatbot.")
    SIMULATION_GOAL_UNKNOWN = "simulation_goal_unknown", 422, _("The goal of this draft does not exist.")
    SIMULATION_REQUIRED = (
        "simulation_required",
        409,
        _("No simulation of this version has passed. Run one, or give a reason of at least 10 characters."),
    )
    SKILL_DAMAGED = "skill_damaged", 409, _("The skill's stored files differ from the installed ones.")
    SKILL_DISABLED = "skill_disabled", 409
    SKILL_INVALID = "skill_invalid", 400
    SKILL_MISSING = "skill_missing", 409
    SKILL_MOVED = "skill_moved", 409
    SKILL_NOT_ACTIVE = "skill_not_active", 409, _("Only a version that is in use can be exported.")
    SKILL_NOT_APPROVED = "skill_not_approved", 409, _("This version was never used, so it needs approval first.")
    SKILL_NOT_BUNDLED = "skill_not_bundled", 409
    SKILL_NOT_INHERITED = "skill_not_inherited", 400, _("I can't do that here.")
    SKILLS_WAITING = "skills_waiting", 409
    SOURCE_LOCATION = "source_location", 422, _("This isn't a place that a source of this kind can read.")
    SPAWN_POLICY_MISSING = (
        "spawn_policy_missing",
        400,
        _("A standing approval needs the template of what it may start."),
    )
    STATE_MISSING = "state_missing", 409, _("The script's address does not carry the state it was given.")
    STEP_UP_REQUIRED = "step_up_required", 403, _("Confirm this with your passkey.")
    SUBSCRIPTION_INVALID = "subscription_invalid", 400
    SUBSCRIPTION_UNSUPPORTED = "subscription_unsupported", 400
    TASK_BOUNDS = "task_bounds", 422, _("Enter a priority from 0 to 9 and 1 to 10 attempts.")
    TASK_DELEGATES = "task_delegates", 422
    TASK_DELETED = "task_deleted", 409
    TASK_ID_MISSING = "task_id_missing", 422
    TASK_LIMITS = "task_limits", 422
    TASK_LOOP = "task_loop", 422
    TASK_MODEL = "task_model", 422, _("This model isn't available.")
    TASK_NAME = "task_name", 422
    TASK_OF_ANOTHER = (
        "task_of_another",
        403,
        _("This task runs in another member's name. Only they or an owner can change it."),
    )
    TASK_ROUTE = "task_route", 422, _("Choose where the result should go.")
    TASK_SAYS_NOTHING = "task_says_nothing", 422
    TASK_SKILLS = "task_skills", 422
    TASK_TOOLS = "task_tools", 422
    TENANT_EXISTS = "tenant_exists", 409
    TEXT_MISSING = "text_missing", 400, _("Write what should be sent.")
    THROTTLED = "throttled", 429
    TICKS_UNFIT = "ticks_unfit", 409
    TOKEN_REVOKED = "token_revoked", 409, _("This approval was already revoked.")
    TOO_DEEP = "too_deep", 409
    TOO_LARGE = "too_large", 413
    TOO_MANY = "too_many", 422
    TOO_MANY_ATTEMPTS = "too_many_attempts", 429
    TOO_MANY_DRAFTS = "too_many_drafts", 409, _("You have reached the maximum number of drafts. Delete one first.")
    TOO_MANY_GATES = "too_many_gates", 409
    TOO_MANY_PASSKEYS = "too_many_passkeys", 409
    TOO_MANY_QUESTIONS = "too_many_questions", 409, _("This visitor already has several open questions.")
    TOO_MANY_REVISIONS = (
        "too_many_revisions",
        409,
        _("This draft has reached its maximum number of revisions. Start a new one."),
    )
    TOO_MANY_SCENARIOS = "too_many_scenarios", 409, _("A suite has 2000 scenarios at most.")
    TOO_MANY_SERVERS = "too_many_servers", 422
    TOO_MANY_WINDOWS = "too_many_windows", 400
    TOO_MUCH_WAITING = (
        "too_much_waiting",
        400,
        _("several of your requests are still open; please wait for those first"),
    )
    TOOL_CHANGED = "tool_changed", 409, _("The server's description of this tool has changed. Review it again.")
    TOOL_NOT_GRANTED = "tool_not_granted", 400
    TOOL_PROOF = "tool_proof", 422
    TOOL_SERVER_EXISTS = "tool_server_exists", 422, _("A server with this name already exists.")
    TOOL_SERVER_NAME = "tool_server_name", 422
    TOOL_SERVER_SECRET = (
        "tool_server_secret",
        422,
        _("This isn't a valid token: it contains characters that tokens can't have."),
    )
    TOOL_SERVER_UNREACHABLE = "tool_server_unreachable", 502
    TOOL_TERMS = "tool_terms", 422
    TOOL_UNUSABLE = "tool_unusable", 422
    TOTP_EXISTS = "totp_exists", 409, _("You already have an authenticator app. Remove it before you set up another.")
    TRIGGER_CAP = "trigger_cap", 422
    TRIGGER_KIND = "trigger_kind", 422, _("A trigger of this kind can't be set up.")
    TRIGGER_LOOP = "trigger_loop", 422, _("A task can't start itself.")
    TRIGGER_OFF = "trigger_off", 409
    TRIGGER_SPEC = "trigger_spec", 422
    TRIGGER_TWICE = "trigger_twice", 422, _("The task already has this trigger.")
    TWICE = "twice", 409
    UNAVAILABLE = "unavailable", 503
    UNKNOWN_LANGUAGE = "unknown_language", 400
    UNKNOWN_ROLE = "unknown_role", 409, _("Choose a role.")
    UNKNOWN_TIMEZONE = "unknown_timezone", 422
    UNKNOWN_TYPE = "unknown_type", 400, _("Unknown frame type.")
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", 415
    UNSUPPORTED_TYPE = "unsupported_type", 422
    VAULT_MISSING = "vault_missing", 409
    WAITING_ALREADY = "waiting_already", 400, _("this is already in progress")
    WEAK_PASSWORD = "weak_password", 409
    WEBHOOK_EVENTS = "webhook_events", 422, _("Choose events from the list.")
    WEBHOOK_URL = "webhook_url", 422, _("Enter a public https address without a user name and password.")
    WEBHOOKS_FULL = "webhooks_full", 422
    WEBSITE_ADDRESS = "website_address", 422, _("Enter the address of a public website, such as example.com.")
    WORK_SETTLED = "work_settled", 409
    WRONG_CODE = "wrong_code", 409, _("That code isn't correct. Enter the newest code from your app.")
    WRONG_PASSWORD = "wrong_password", 403
