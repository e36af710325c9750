"""The words of the tenants' room: roles and what each may do, scopes of API keys, how sites sign, letters."""

from django.db.models import TextChoices


class Role(TextChoices):
    """What a member may do: owners administer, approvers decide cards, agents answer, viewers look."""

    OWNER = "owner", "Owner"
    APPROVER = "approver", "Approver"
    AGENT = "agent", "Agent"
    VIEWER = "viewer", "Viewer"


class KeyScope(TextChoices):
    """What a narrowed API key may do; one without any may what owners may."""

    SAFETY_AGENT = "safety:agent", "Report to the safety loop"
    SAFETY_CONFIRM = "safety:confirm", "Confirm what other agents' safety loop paused"


class IdentityAlgorithm(TextChoices):
    """With what a site signs who its visitor is. The key decides, never the token."""

    HS256 = "HS256", "HS256: a secret that the site's server shares with us"
    EDDSA = "EdDSA", "EdDSA: an Ed25519 key of the site's server"
    ES256 = "ES256", "ES256: a P-256 key of the site's server"
    RS256 = "RS256", "RS256: an RSA key of the site's server, 2048 bits or more"


class Capability(TextChoices):
    """What somebody can be allowed to do. Who may, says `apps.tenants.rules.roles_with`."""

    LOOK = "look", "Read conversations, work, runs and the activity log"
    ANSWER = "answer", "Answer visitors, take conversations over, stop runs"
    DECIDE = "decide", "Decide cards, sign approvals, set up tasks"
    ADMINISTER = "administer", "Change gates, deployments, limits, what runs by itself, and use the REST API"
    MANAGE_MEMBERS = "manage_members", "Invite and remove members, change roles"
    MANAGE_API_KEYS = "manage_api_keys", "Make and revoke API keys"
    MANAGE_LOGIN = "manage_login", "Say how members log in"


class LoginMethod(TextChoices):
    """How somebody came in."""

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
    """`DROPPED`: there was nobody to tell, or nothing to say any more."""

    WAITING = "waiting", "on its way"
    SENT = "sent", "sent"
    DROPPED = "dropped", "not needed"
    FAILED = "failed", "could not be sent"


class PolicyKind(TextChoices):
    """The kinds of policy whose items in force are sealed (policy_seals)."""

    GATES = "gates", "Gates"
    LEVELS = "levels", "Access levels"
    APPROVALS = "approvals", "Approval policies"
    GOALS = "goals", "Goals"
    SKILLS = "skills", "Skills in use"
    TOOLS = "tools", "Outside tools"
    REVOCATIONS = "revocations", "Revocations"
