"""Enums of the tenants room: roles, capabilities, API key scopes, login methods, e-mails, kinds of policy."""

from django.db.models import TextChoices


class Role(TextChoices):
    """A member's role: owners administer, approvers decide cards, agents answer visitors, viewers read."""

    OWNER = "owner", "Owner"
    APPROVER = "approver", "Approver"
    AGENT = "agent", "Agent"
    VIEWER = "viewer", "Viewer"


class KeyScope(TextChoices):
    """What an API key with scopes may do. A key without scopes has the rights of an owner."""

    SAFETY_AGENT = "safety:agent", "Report to the safety loop"
    SAFETY_CONFIRM = "safety:confirm", "Confirm steps that another agent's safety loop paused"


class IdentityAlgorithm(TextChoices):
    """Algorithm with which a website signs its visitors' identity. It is set by the key, never by the token."""

    HS256 = "HS256", "HS256: a secret that the site's server shares with us"
    EDDSA = "EdDSA", "EdDSA: an Ed25519 key of the site's server"
    ES256 = "ES256", "ES256: a P-256 key of the site's server"
    RS256 = "RS256", "RS256: an RSA key of the site's server, 2048 bits or more"


class Capability(TextChoices):
    """What a member can be allowed to do; `apps.tenants.rules.roles_with` says which roles are."""

    LOOK = "look", "View conversations, work, runs and the activity log"
    ANSWER = "answer", "Answer visitors, take conversations over, stop runs"
    DECIDE = "decide", "Decide cards, sign approvals, set up tasks"
    ADMINISTER = "administer", "Manage gates, deployments, limits and automations, and use the REST API"
    MANAGE_MEMBERS = "manage_members", "Invite and remove members, change roles"
    MANAGE_API_KEYS = "manage_api_keys", "Create and revoke API keys"
    MANAGE_LOGIN = "manage_login", "Manage login settings"


class LoginMethod(TextChoices):
    """How a member logged in."""

    PASSWORD = "password", "Password"
    CODE = "code", "Password and a code"
    RECOVERY = "recovery", "Password and a recovery code"
    SECOND_PASSKEY = "second_passkey", "Password and a passkey"
    PASSKEY = "passkey", "Passkey"
    PROVIDER = "provider", "The company's login"


class EmailKind(TextChoices):
    RESET = "reset", "A link to set a new password"
    LOCKED = "locked", "Somebody failed to log in too often"
    INVITATION = "invitation", "An invitation"


class EmailState(TextChoices):
    """`DROPPED`: the recipient or the reason for the e-mail was gone when it was due."""

    WAITING = "waiting", "on its way"
    SENT = "sent", "sent"
    DROPPED = "dropped", "not needed"
    FAILED = "failed", "could not be sent"


class PolicyKind(TextChoices):
    """The kinds of policy whose active items are sealed (policy_seals)."""

    GATES = "gates", "Gates"
    LEVELS = "levels", "Access levels"
    APPROVALS = "approvals", "Approval policies"
    GOALS = "goals", "Goals"
    SKILLS = "skills", "Skills in use"
    TOOLS = "tools", "Outside tools"
    REVOCATIONS = "revocations", "Revocations"
