from django.db.models import TextChoices


class Role(TextChoices):
    """What a member may do: owners administer, approvers decide cards, agents answer, viewers look."""

    OWNER = "owner", "Owner"
    APPROVER = "approver", "Approver"
    AGENT = "agent", "Agent"
    VIEWER = "viewer", "Viewer"
