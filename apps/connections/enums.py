"""Enumerations of connections to outside accounts (spec 2.5, 5.10; contract silas 13)."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class ConnectionStatus(TextChoices):
    """Status of a connection; `rules.TRANSITIONS` lists the allowed changes."""

    PROPOSED = "proposed", _("Proposed")
    CONNECTING = "connecting", _("Connecting")
    ACTIVE = "active", _("Active")
    PAUSED = "paused", _("Paused")
    FAILED = "failed", _("Not working")
    REMOVED = "removed", _("Removed")


class AuthStrategy(TextChoices):
    DEVICE_CODE = "device_code", _("Code entered at the service")
    BROWSER_REDIRECT = "browser_redirect", _("Sign-in at the service")
    SECURE_INPUT = "secure_input", _("Secret entered here")


class Tier(TextChoices):
    """What a connection may be used for here, even if the service would allow more (spec 2.5)."""

    OBSERVE = "observe", _("Read and summarise")
    DRAFT = "draft", _("Prepare drafts")
    ACT = "act", _("Send, change and delete")
    MANAGE = "manage", _("Change settings and rules")


class Purpose(TextChoices):
    """Why a connection is set up."""

    SETUP = "setup", _("First connection")
    RECONNECT = "reconnect", _("Reconnect")
    WIDEN = "widen", _("More access")


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

    DRAFT_IT_REQUEST = "request_admin_approval", _("Draft IT request")
    PERSONAL_ACCOUNT = "use_personal_account", _("Use personal account")
    RETRY = "retry", _("Retry")
    FEWER = "retry_fewer_permissions", _("Retry with fewer permissions")
    RECONNECT = "reconnect", _("Reconnect")
    LATER = "retry_later", _("Retry later")
    SKIP = "skip", _("Skip")


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
