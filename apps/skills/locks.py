"""Which rows of this room does somebody hold? Versions of one skill are always locked together, oldest first."""

from __future__ import annotations

from apps.skills.models import SkillVersion


def lock_skill(name: str) -> list[SkillVersion]:
    """Every version of this skill, whatever its status, until the transaction ends."""
    rows = SkillVersion.objects.select_for_update(of=("self",), no_key=True)
    return list(rows.filter(name=name).order_by("number"))
