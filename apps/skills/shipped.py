"""The skills that ship with the installation, and how a company takes one in.

They are folders beside the code. The operator who starts this installation trusts them, so an owner takes them in
without another approval. `list_all` tells the database at each `migrate`, as the tables' owner, what they are; web's
role can take in exactly that.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from apps.skills.loader import load_folder
from apps.skills.models import ShippedSkill, SkillVersion
from apps.skills.services import install_version
from kernel.canonical import sha256_hex
from kernel.errors import NotFound

FOLDER = Path(settings.BASE_DIR) / "skills"
# Those for every company; the desks of the demo companies are theirs alone.
NAMES = ("coding", "skill-maker", "http-api", "knowledge-editor")


def not_yet_here() -> list[str]:
    """The names that could be taken in; one query."""
    here = set(SkillVersion.objects.filter(name__in=NAMES).values_list("name", flat=True))
    return [name for name in NAMES if name not in here and (FOLDER / name).is_dir()]


def list_all(using: str) -> None:
    """List every skill beside the code, and nothing else."""
    ShippedSkill.objects.using(using).all().delete()
    list_also(sorted(path.parent for path in FOLDER.glob("*/SKILL.md")), using=using)


def list_also(folders: Iterable[Path], *, using: str) -> None:
    """List these folders too. Raises `SilasError("skill_invalid")`."""
    for folder in map(load_folder, folders):
        ShippedSkill.objects.using(using).update_or_create(
            digest=folder.digest,
            defaults={
                "name": folder.manifest.name,
                "manifest": folder.manifest.model_dump(mode="json"),
                "body": folder.body,
                "files": {path: sha256_hex(content) for path, content in folder.files.items()},
            },
        )


def add(name: str) -> SkillVersion:
    """Inside a scope. Raises `NotFound`."""
    if name not in NAMES or not (FOLDER / name).is_dir():
        raise NotFound("skill that ships with the installation")
    return install_version(FOLDER / name)
