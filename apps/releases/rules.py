"""Which release a conversation gets, how shares change, and how two snapshots differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from apps.releases.enums import ChangeKind
from apps.releases.schemas import Change, GateRef, Snapshot
from kernel.canonical import sha256_hex

WHOLE = 100


def bucket_of(session_id: UUID) -> int:
    """A number from 0 to 99 that stays the same for a conversation."""
    return int(sha256_hex(str(session_id))[:8], 16) % WHOLE


def pick(shares: Sequence[int], session_id: UUID | None) -> int:
    """Return the index of the conversation's release among the live ones, whose shares are given by ascending number.
    Without a conversation, the one with the largest share."""
    if session_id is None:
        return max(range(len(shares)), key=lambda index: shares[index])
    bucket, below = bucket_of(session_id), 0
    for index in reversed(range(len(shares))):
        below += shares[index]
        if bucket < below:
            return index
    return 0


def differences(before: Snapshot, after: Snapshot) -> list[Change]:
    """What differs, served fields first."""
    old, new = before.served, after.served
    changes = [
        *_one(ChangeKind.PERSONA, old.persona, new.persona),
        *_each(ChangeKind.MODEL, old.models, new.models),
        *_one(ChangeKind.PRESET, old.preset, new.preset),
        *_each(ChangeKind.AXIS, _percents(old.axes), _percents(new.axes)),
        *_one(ChangeKind.GREETING, old.greeting, new.greeting),
        *_one(ChangeKind.SUGGESTIONS, "\n".join(old.suggestions), "\n".join(new.suggestions)),
        *_one(ChangeKind.LANGUAGES, ", ".join(old.languages), ", ".join(new.languages)),
    ]
    was, now = before.recorded, after.recorded
    return [
        *changes,
        *_one(ChangeKind.GOAL, was.goal, now.goal),
        *_each(ChangeKind.GATE, _gates(was.gates), _gates(now.gates)),
        *_each(ChangeKind.SKILL, was.skills, now.skills),
        *_knowledge(before, after),
    ]


def _one(kind: ChangeKind, before: str, after: str, name: str = "") -> Iterator[Change]:
    if before != after:
        yield Change(kind, name, before, after)


def _each(kind: ChangeKind, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        yield from _one(kind, before.get(name, ""), after.get(name, ""), name)


def _percents(axes: Mapping[str, float]) -> dict[str, str]:
    return {name: f"{value * 100:g}" for name, value in axes.items()}


def _gates(gates: Sequence[GateRef]) -> dict[str, str]:
    """Gates of all chatbots and gates of this one may have the same name."""
    return {f"{gate.name} *" if gate.everywhere else gate.name: str(gate.version) for gate in gates}


def _knowledge(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    was, now = before.recorded, after.recorded
    if was.knowledge != now.knowledge:
        yield Change(ChangeKind.KNOWLEDGE, "", str(was.documents), str(now.documents))
