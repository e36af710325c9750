"""The skills that ship with the installation, and their installation for a company.

They are folders beside the code, listed by content in `bundled.json` (`integrity`). The operator who starts this
installation trusts them, so an owner installs them without another approval.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from apps.skills.models import SkillVersion
from apps.skills.services import install_version
from kernel.errors import NotFound

FOLDER = Path(settings.BASE_DIR) / "skills"
# For every company; the desks of the demo companies are not offered to others.
NAMES = ("coding", "skill-maker", "http-api", "knowledge-editor")


def available_names() -> list[str]:
    """Return the names that could be installed; one query."""
    here = set(SkillVersion.objects.filter(name__in=NAMES).values_list("name", flat=True))
    return [name for name in NAMES if name not in here and (FOLDER / name).is_dir()]


def install(name: str) -> SkillVersion:
    """Install a bundled skill, inside a scope. Raises `NotFound`."""
    if name not in NAMES or not (FOLDER / name).is_dir():
        raise NotFound()
    return install_version(FOLDER / name)
