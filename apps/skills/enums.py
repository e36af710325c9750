"""Enumerations of the skills room."""

from django.db.models import TextChoices


class SkillStatus(TextChoices):
    """Status of a version. Only an active one is ever found. A version that was declined or failed its trial is
    withdrawn; one that a person switched off is disabled."""

    PROPOSED = "proposed", "Waiting for approval"
    ACTIVE = "active", "In use"
    DISABLED = "disabled", "Disabled"
    WITHDRAWN = "withdrawn", "Withdrawn"


class SkillSource(TextChoices):
    """Where a version came from. What ships with the installation is trusted by the operator; everything else needs an
    approval."""

    BUNDLED = "bundled", "Built-in"
    FOLDER = "folder", "A folder"
    ARCHIVE = "archive", "An archive"
    GIT = "git", "A git repository"
    MAKER = "maker", "Written here"
    PACKAGE = "package", "A signed package"


class PackageState(TextChoices):
    WAITING = "waiting", "Waiting for review"
    TAKEN = "taken", "Proposed"
    REFUSED = "refused", "Refused"
