"""The skills that ship with the installation, and how a company takes one in.

They are folders beside the code, listed by content in `bundled.json` (`integrity`). The operator who starts this
installation trusts them, so an owner takes them in without another approval.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from apps.skills.models import SkillVersion
from apps.skills.services import install_version
from kernel.errors import NotFound

FOLDER = Path(settings.BASE_DIR) / "skills"
# Those for every company; the desks of the demo companies are theirs alone.
NAMES = ("coding", "skill-maker", "http-api", "knowledge-editor")


def available_names() -> list[str]:
    """The names that could be taken in; one query."""
    here = set(SkillVersion.objects.filter(name__in=NAMES).values_list("name", flat=True))
    return [name for name in NAMES if name not in here and (FOLDER / name).is_dir()]


def install(name: str) -> SkillVersion:
    """Inside a scope. Raises `NotFound`."""
    if name not in NAMES or not (FOLDER / name).is_dir():
        raise NotFound("skill that ships with the installation")
    return install_version(FOLDER / name)
