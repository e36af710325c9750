"""Enumerations of connections to outside accounts (spec 2.5, 5.10; contract silas 13)."""

from django.db.models import TextChoices


class ConnectionStatus(TextChoices):
    """Status of a connection; `rules.TRANSITIONS` lists the allowed changes."""

    PROPOSED = "proposed", "Proposed"
    CONNECTING = "connecting", "Connecting"
    ACTIVE = "active", "Active"
    PAUSED = "paused", "Paused"
    FAILED = "failed", "Not working"
    REMOVED = "removed", "Removed"


class AuthStrategy(TextChoices):
    DEVICE_CODE = "device_code", "Code entered at the service"
    BROWSER_REDIRECT = "browser_redirect", "Sign-in at the service"
    SECURE_INPUT = "secure_input", "Secret entered here"


class Tier(TextChoices):
    """What a connection may be used for here, whatever the service would allow (spec 2.5)."""

    OBSERVE = "observe", "Read and summarise"
    DRAFT = "draft", "Prepare drafts"
    ACT = "act", "Send, change and delete"
    MANAGE = "manage", "Change settings and rules"


class Purpose(TextChoices):
    """Why a connection is set up."""

    SETUP = "setup", "First connection"
    RECONNECT = "reconnect", "Reconnect"
    WIDEN = "widen", "More access"


class SetupState(TextChoices):
    """waiting → running ⇄ asking → done, failed or cancelled. `asking`: a person's answer is needed."""

    WAITING = "waiting"
    RUNNING = "running"
    ASKING = "asking"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FailureType(TextChoices):
    """Kinds of failures (spec 5.10.4); `unknown` is everything else that a script reports."""

    ENTERPRISE_POLICY_BLOCK = "enterprise_policy_block"
    CONSENT_DENIED = "consent_denied"
    MFA_REQUIRED = "mfa_required"
    TOKEN_REVOKED = "token_revoked"
    RATE_LIMITED = "rate_limited"
    SERVICE_UNAVAILABLE = "service_unavailable"
    UNKNOWN = "unknown"


class Recovery(TextChoices):
    """What a person can do about a broken connection."""

    DRAFT_IT_REQUEST = "request_admin_approval", "Draft IT request"
    PERSONAL_ACCOUNT = "use_personal_account", "Use personal account"
    RETRY = "retry", "Retry"
    FEWER = "retry_fewer_permissions", "Retry with fewer permissions"
    RECONNECT = "reconnect", "Reconnect"
    LATER = "retry_later", "Retry later"
    SKIP = "skip", "Skip"


class Script(TextChoices):
    """The scripts of a connection skill (spec 10.6)."""

    DISCOVER = "discover"
    SETUP = "setup"
    PROBE = "probe"
    HEALTH_CHECK = "health_check"
    REFRESH = "refresh_token"
    RECOVER = "recover"


class Backend(TextChoices):
    """Where a credential's value is stored."""

    DATABASE = "database"
    KEYRING = "keyring"
    VAULT = "vault"
