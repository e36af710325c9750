"""How do a skill's versions, files and report look? What the skill's page and the card in Review both show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.approvals.models import Answer, Card
from apps.console import capabilities
from apps.console.narrative import Names
from apps.skills import differences
from apps.skills.differences import FileChange
from apps.skills.enums import SkillStatus
from apps.skills.loader import load_files
from apps.skills.models import SkillFile, SkillVersion
from kernel.canonical import sha256_hex
from kernel.errors import SilasError
from kernel.unicode_safety import truncate

LONGEST_FILE = 20_000


@dataclass(frozen=True)
class ShownFile:
    """`text` is empty for what is no text; `lines` counts all of them."""

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


def contents_of(version: SkillVersion) -> dict[str, bytes]:
    rows = SkillFile.objects.filter(version=version).values_list("path", "content")
    return {path: bytes(content) for path, content in rows}


def files_of(version: SkillVersion) -> list[ShownFile]:
    """SKILL.md apart: it is shown as text of its own."""
    return _shown(contents_of(version))


def _shown(contents: Mapping[str, bytes]) -> list[ShownFile]:
    return [_file(path, content) for path, content in sorted(contents.items()) if path != "SKILL.md"]


def _file(path: str, content: bytes) -> ShownFile:
    text = differences.text_of(content) or ""
    cut = len(text) > LONGEST_FILE
    return ShownFile(path, text[:LONGEST_FILE], text.count("\n") + bool(text), len(content), cut)


def deciders_of(versions: Sequence[SkillVersion]) -> dict[UUID, str]:
    """By card, who answered it last, as an actor of the log."""
    cards = [one.card_id for one in versions if one.card_id]
    rows = Answer.objects.filter(card_id__in=cards).order_by("answered_at").values_list("card_id", "user_id")
    return {card: f"user:{user}" for card, user in rows}


def line_of(version: SkillVersion, called: Names, deciders: Mapping[UUID, str]) -> ShownVersion:
    decider = deciders.get(version.card_id) if version.card_id else ""
    wanted = version.requested_by
    return ShownVersion(version, called.of(wanted) if wanted else "", called.of(decider) if decider else "")


def report_of(version: SkillVersion) -> list[tuple[str, list[str]]]:
    """The report in sections: what was found, where it came from, what the trial said. Unknown parts as they stand."""
    return [(_humane(about), lines) for about, said in version.report.items() if (lines := _lines(said))]


def _lines(said: Any) -> list[str]:
    if isinstance(said, Mapping):
        return [
            f"{_humane(str(name))}: {_plain(value)}" for name, value in said.items() if value not in (None, "", [], {})
        ]
    if isinstance(said, list):
        return [_plain(each) for each in said]
    return [_plain(said)] if said not in (None, "") else []


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_humane(str(name))} {_plain(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(_plain(each) for each in value)
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else truncate(str(value), 500)


def _humane(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


@dataclass(frozen=True)
class Asked:
    """What a `skill_install` card asks about: exactly the version that its yes binds."""

    version: SkillVersion
    before: SkillVersion | None
    title: str
    may: list[tuple[str, str]]
    files: list[ShownFile]
    changes: tuple[FileChange, ...]
    report: list[tuple[str, list[str]]]


def asked_about(card: Card) -> Asked | None:
    """None for another kind of card, and where no version here says exactly what the payload names by its hashes."""
    payload = card.payload
    if card.kind != "skill_install" or "content_hash" not in payload:
        return None
    version = SkillVersion.objects.filter(digest=payload["content_hash"]).order_by("-number").first()
    if version is None or not _is_signed(version, contents_of(version), payload):
        return None
    contents, before = contents_of(version), _before(version)
    changes = differences.compare(contents_of(before), contents) if before else ()
    title, may = capabilities.title_of(version), capabilities.may(version.manifest)
    return Asked(version, before, title, may, _shown(contents), changes, _signed_report(version, payload))


def _is_signed(version: SkillVersion, contents: Mapping[str, bytes], payload: Mapping[str, Any]) -> bool:
    """Whether files, instructions and abilities are what the hash of the payload names."""
    try:
        folder = load_files(contents)
    except SilasError:
        return False
    return (
        folder.digest == payload["content_hash"]
        and folder.body == version.body
        and folder.manifest.model_dump(mode="json") == version.manifest
    )


def _signed_report(version: SkillVersion, payload: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    if sha256_hex(dict(version.report)) == payload.get("report_hash"):
        return report_of(version)
    return [("changed", ["The report has been added to since. What is signed stands under Checked."])]


def _before(version: SkillVersion) -> SkillVersion | None:
    """The one in use, else the newest that ever was."""
    others = SkillVersion.objects.filter(name=version.name).exclude(pk=version.pk)
    ran = list(others.filter(status__in=(SkillStatus.ACTIVE, SkillStatus.DISABLED)).order_by("-number"))
    found: SkillVersion | None = next((one for one in ran if one.status == SkillStatus.ACTIVE), None)
    return found or next(iter(ran), None)


def problems_in(refusal: SilasError | None) -> list[str]:
    """Everything that keeps it from being put up, as the checks said it."""
    return [str(each) for each in refusal.extra.get("problems", ())] if refusal else []
