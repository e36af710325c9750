"""Tables of the skills room: installed versions and records, drafts, and signed packages."""

from apps.skills.models.drafts import DraftRevision, SkillDraft
from apps.skills.models.packages import PackageKey, SkillPackage, TrustedPublisher
from apps.skills.models.skills import TRANSITIONS, Record, SkillFile, SkillVersion

__all__ = [
    "TRANSITIONS",
    "DraftRevision",
    "PackageKey",
    "Record",
    "SkillDraft",
    "SkillFile",
    "SkillPackage",
    "SkillVersion",
    "TrustedPublisher",
]
