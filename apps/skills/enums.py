"""Enumerations of the skills room."""

from enum import StrEnum

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class SkillStatus(TextChoices):
    """Status of a version. Only an active one is ever found. A version that was declined or failed its trial is
    withdrawn; one that a person switched off is disabled."""

    PROPOSED = "proposed", _("Waiting for approval")
    ACTIVE = "active", _("In use")
    DISABLED = "disabled", _("Disabled")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class SkillSource(TextChoices):
    """Where a version came from. What ships with the installation is trusted by the operator; everything else needs an
    approval."""

    BUNDLED = "bundled", _("Built-in")
    FOLDER = "folder", _("A folder")
    ARCHIVE = "archive", _("An archive")
    GIT = "git", _("A git repository")
    MAKER = "maker", _("Written here")
    PACKAGE = "package", _("A signed package")


class Executor(StrEnum):
    """What runs the code of a call, in the place of a script (spec 9.2)."""

    PYTHON = "python_exec"
    SHELL = "shell_exec"


class PackageState(TextChoices):
    WAITING = "waiting", _("Waiting for review")
    TAKEN = "taken", _("Proposed")
    REFUSED = "refused", _("Refused")
