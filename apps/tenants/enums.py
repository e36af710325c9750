"""Enums of the tenants room: roles, capabilities, API key scopes, login methods, e-mails, kinds of policy."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class Closed(TextChoices):
    """Whether an operator has closed a company, and whether another installation has it now."""

    NO = "", _("Open")
    CLOSED = "closed", _("Closed")
    MOVED = "moved", _("Moved to another installation")


class Role(TextChoices):
    """A member's role: owners administer, approvers decide cards, agents answer visitors, viewers read."""

    OWNER = "owner", _("Owner")
    APPROVER = "approver", _("Approver")
    AGENT = "agent", _("Agent")
    VIEWER = "viewer", _("Viewer")


class PictureKind(TextChoices):
    """The pictures of a chatbot: one in the widget's header, one beside its messages."""

    LOGO = "logo", _("Logo")
    AVATAR = "avatar", _("Avatar")


class KeyScope(TextChoices):
    """What an API key with scopes may do. A key without scopes has the rights of an owner."""

    SAFETY_AGENT = "safety:agent", _("Report to the safety loop")
    SAFETY_CONFIRM = "safety:confirm", _("Confirm steps that another agent's safety loop paused")
    MEMORY_READ = "memory:read", _("Read and export memories")
    MEMORY_WRITE = "memory:write", _("Correct, pin, delete and import memories")
    SESSIONS_READ = "sessions:read", _("Read conversations, notes, labels and canned replies")
    SESSIONS_WRITE = "sessions:write", _("Answer and manage conversations, change labels and canned replies")
    SESSIONS_SECRETS = "sessions:secrets", _("Take confidential details that visitors gave")
    CONTACTS_READ = "contacts:read", _("Read contacts, their conversations, consents and notes")
    CONTACTS_WRITE = "contacts:write", _("Add, change and merge contacts")
    CARDS_READ = "cards:read", _("Read cards and what they ask to approve")
    CARDS_DECIDE = "cards:decide", _("Decide cards, with a key for signing or a link for an approver")
    WORK_READ = "work:read", _("Read tasks, projects and goals")
    WORK_WRITE = "work:write", _("Cancel and resume tasks, projects and goals")
    AUTOMATIONS_READ = "automations:read", _("Read automations, their runs and what they found")
    AUTOMATIONS_WRITE = "automations:write", _("Manage and run automations")
    KNOWLEDGE_READ = "knowledge:read", _("Read and search documents, sources and gaps")
    KNOWLEDGE_WRITE = "knowledge:write", _("Manage documents, sources and gaps")
    DEPLOYMENTS_READ = "deployments:read", _("Read chatbots, their personality and releases")
    DEPLOYMENTS_WRITE = "deployments:write", _("Manage chatbots, their personality and releases")
    GATES_READ = "gates:read", _("Read gates and their versions")
    GATES_WRITE = "gates:write", _("Manage gates and try them")
    SKILLS_READ = "skills:read", _("Read skills and drafts")
    SKILLS_WRITE = "skills:write", _("Manage skills and drafts")
    CONNECTIONS_READ = "connections:read", _("Read connected accounts and outside tools")
    CONNECTIONS_WRITE = "connections:write", _("Manage connected accounts and outside tools")
    MEMBERS_READ = "members:read", _("Read members")
    MEMBERS_WRITE = "members:write", _("Invite and remove members, change roles")
    AUDIT_READ = "audit:read", _("Read, check and export the audit log")
    INSIGHTS_READ = "insights:read", _("Read insights")
    SETTINGS_READ = "settings:read", _("Read limits and settings of the company")
    SETTINGS_WRITE = "settings:write", _("Change limits and settings of the company")
    API_KEYS_READ = "api_keys:read", _("List API keys")
    API_KEYS_WRITE = "api_keys:write", _("Create, rotate and revoke API keys with no more rights than this one")


class TokenKind(TextChoices):
    """Kinds of OAuth tokens."""

    ACCESS = "access", _("Access token")
    REFRESH = "refresh", _("Refresh token")


class IdentityAlgorithm(TextChoices):
    """Algorithm with which a website signs its visitors' identity. It is set by the key, never by the token."""

    HS256 = "HS256", _("HS256: a secret that the site's server shares with us")
    EDDSA = "EdDSA", _("EdDSA: an Ed25519 key of the site's server")
    ES256 = "ES256", _("ES256: a P-256 key of the site's server")
    RS256 = "RS256", _("RS256: an RSA key of the site's server, 2048 bits or more")


class Capability(TextChoices):
    """What a member can be allowed to do; `apps.tenants.rules.roles_with` says which roles are."""

    LOOK = "look", _("View conversations, work, runs and the activity log")
    ANSWER = "answer", _("Answer visitors, take conversations over, stop runs")
    DECIDE = "decide", _("Decide cards, sign approvals, set up tasks")
    ADMINISTER = "administer", _("Manage gates, deployments, limits and automations, and use the REST API")
    MANAGE_MEMBERS = "manage_members", _("Invite and remove members, change roles")
    MANAGE_API_KEYS = "manage_api_keys", _("Create and revoke API keys")
    MANAGE_LOGIN = "manage_login", _("Manage login settings")


class LoginMethod(TextChoices):
    """How a member logged in."""

    PASSWORD = "password", _("Password")
    CODE = "code", _("Password and a code")
    RECOVERY = "recovery", _("Password and a recovery code")
    SECOND_PASSKEY = "second_passkey", _("Password and a passkey")
    PASSKEY = "passkey", _("Passkey")
    PROVIDER = "provider", _("The company's login")


class EmailKind(TextChoices):
    RESET = "reset", _("A link to set a new password")
    LOCKED = "locked", _("Too many failed logins")
    INVITATION = "invitation", _("An invitation")


class EmailState(TextChoices):
    """`DROPPED`: the recipient or the reason for the e-mail was gone when it was due."""

    WAITING = "waiting", _("on its way")
    SENT = "sent", _("sent")
    DROPPED = "dropped", _("not needed")
    FAILED = "failed", _("could not be sent")


class PolicyKind(TextChoices):
    """The kinds of policy whose active items are sealed (policy_seals)."""

    GATES = "gates", _("Gates")
    LEVELS = "levels", _("Access levels")
    APPROVALS = "approvals", _("Approval policies")
    GOALS = "goals", _("Goals")
    SKILLS = "skills", _("Skills in use")
    TOOLS = "tools", _("Outside tools")
    REVOCATIONS = "revocations", _("Revocations")
