"""A skill's versions, files and report, as the skill's page and the card in Review show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import Answer, Card
from apps.console.names import Names
from apps.console.pages.skills import capabilities
from apps.skills import differences
from apps.skills.differences import FileChange
from apps.skills.enums import SkillStatus
from apps.skills.loader import load_files
from apps.skills.models import SkillVersion
from apps.skills.queries import contents_of
from kernel.canonical import sha256_hex
from kernel.errors import SilasError
from kernel.unicode_safety import truncate

SHOWN_CHARS = 20_000


@dataclass(frozen=True)
class ShownFile:
    """A file of a skill; `text` is empty for binary files, `lines` counts all lines, `cut` if not all are shown."""

    path: str
    text: str
    lines: int
    size: int
    cut: bool


@dataclass(frozen=True)
class ShownVersion:
    version: SkillVersion
    proposed_by: str
    decided_by: str


def files_of(version: SkillVersion) -> list[ShownFile]:
    """Return the files except SKILL.md, which is shown on its own."""
    return _shown_files(contents_of(version))


def _shown_files(contents: Mapping[str, bytes]) -> list[ShownFile]:
    return [_file(path, content) for path, content in sorted(contents.items()) if path != "SKILL.md"]


def _file(path: str, content: bytes) -> ShownFile:
    text = differences.text_of(content) or ""
    cut = len(text) > SHOWN_CHARS
    return ShownFile(path, text[:SHOWN_CHARS], text.count("\n") + bool(text), len(content), cut)


def deciders_of(versions: Sequence[SkillVersion]) -> dict[UUID, str]:
    """Return who answered each card last, as an audit actor, by card."""
    cards = [version.card_id for version in versions if version.card_id]
    rows = Answer.objects.filter(card_id__in=cards).order_by("answered_at").values_list("card_id", "user_id")
    return {card: f"user:{user}" for card, user in rows}


def version_line(version: SkillVersion, names: Names, deciders: Mapping[UUID, str]) -> ShownVersion:
    decider = deciders.get(version.card_id) if version.card_id else ""
    proposer = version.requested_by
    return ShownVersion(version, names.of(proposer) if proposer else "", names.of(decider) if decider else "")


def report_of(version: SkillVersion) -> list[tuple[str, list[str]]]:
    """Return the sections of the report as (title, lines)."""
    return [(_humane(title), lines) for title, content in version.report.items() if (lines := _lines(content))]


def _lines(content: object) -> list[str]:
    if isinstance(content, Mapping):
        return [
            f"{_humane(str(name))}: {_plain(value)}"
            for name, value in content.items()
            if value not in (None, "", [], {})
        ]
    if isinstance(content, list):
        return [_plain(item) for item in content]
    return [_plain(content)] if content not in (None, "") else []


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_humane(str(name))} {_plain(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return truncate(str(value), 500)


def _humane(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


@dataclass(frozen=True)
class SkillUnderReview:
    """The skill of a `skill_install` card: exactly the version that an approval covers."""

    version: SkillVersion
    before: SkillVersion | None
    title: str
    may: list[tuple[str, str]]
    files: list[ShownFile]
    changes: tuple[FileChange, ...]
    report: list[tuple[str, list[str]]]


def skill_under_review(card: Card) -> SkillUnderReview | None:
    """Return the skill of the card; None for other kinds, or if no version here has the hashes of the payload."""
    payload = card.payload
    if card.scope != ApprovalScope.SKILL_INSTALL or "content_hash" not in payload:
        return None
    version = SkillVersion.objects.filter(digest=payload["content_hash"]).order_by("-number").first()
    if version is None or not _matches_payload(version, contents_of(version), payload):
        return None
    contents, before = contents_of(version), _before(version)
    changes = differences.compare(contents_of(before), contents) if before else ()
    title, may = capabilities.title_of(version), capabilities.permissions_in_words(version.manifest)
    return SkillUnderReview(
        version, before, title, may, _shown_files(contents), changes, _signed_report(version, payload)
    )


def _matches_payload(version: SkillVersion, contents: Mapping[str, bytes], payload: Mapping[str, object]) -> bool:
    """True if files, instructions and manifest have the hash in the payload."""
    try:
        folder = load_files(contents)
    except SilasError:
        return False
    return (
        folder.digest == payload["content_hash"]
        and folder.body == version.body
        and folder.manifest.model_dump(mode="json") == version.manifest
    )


def _signed_report(version: SkillVersion, payload: Mapping[str, object]) -> list[tuple[str, list[str]]]:
    if sha256_hex(dict(version.report)) == payload.get("report_hash"):
        return report_of(version)
    return [(_("changed"), [_("The report has changed since then. The signed version is under Checked.")])]


def _before(version: SkillVersion) -> SkillVersion | None:
    """Return the active version, else the newest one that was active before."""
    others = SkillVersion.objects.filter(name=version.name).exclude(pk=version.pk)
    ran = list(others.filter(status__in=(SkillStatus.ACTIVE, SkillStatus.DISABLED)).order_by("-number"))
    row: SkillVersion | None = next((other for other in ran if other.status == SkillStatus.ACTIVE), None)
    return row or next(iter(ran), None)


def problems_in(refusal: SilasError | None) -> list[str]:
    """Return the problems that the checks found."""
    return [str(problem) for problem in refusal.extra.get("problems", ())] if refusal else []
