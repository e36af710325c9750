"""Closed word lists of the skills room."""

from django.db.models import TextChoices


class SkillStatus(TextChoices):
    """Only what is active is found by whoever looks for skills. What was declined, or did not stand its trial, is
    withdrawn; what somebody switched off is disabled."""

    PROPOSED = "proposed", "Waits for a yes"
    ACTIVE = "active", "In use"
    DISABLED = "disabled", "Switched off"
    WITHDRAWN = "withdrawn", "Withdrawn"


class SkillSource(TextChoices):
    """Where a version came from. What ships with the installation is trusted by the operator who starts it; everything
    else needs a yes."""

    BUNDLED = "bundled", "Ships with the installation"
    FOLDER = "folder", "A folder"
    ARCHIVE = "archive", "An archive"
    GIT = "git", "A git repository"
    MAKER = "maker", "Written here"
    PACKAGE = "package", "A signed package"


class PackageState(TextChoices):
    WAITING = "waiting", "Waits for a look at whose it is"
    TAKEN = "taken", "Proposed"
    REFUSED = "refused", "Refused"
