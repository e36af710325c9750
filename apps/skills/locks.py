"""Row locks of this room. Versions of one skill are always locked together, oldest first."""

from __future__ import annotations

from apps.skills.models import SkillVersion


def lock_skill(name: str) -> list[SkillVersion]:
    """Lock and return every version of this skill, of any status."""
    rows = SkillVersion.objects.select_for_update(of=("self",), no_key=True)
    return list(rows.filter(name=name).order_by("number"))
