"""The words of the tenants' room: roles, scopes of API keys, how sites sign."""

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
