"""Shapes of a release: its snapshot, what conversations are served by, and a difference between two snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from apps.releases.enums import ChangeKind
from kernel.canonical import sha256_hex
from llm.models import GROUNDED


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Served(Part):
    """What conversations read from their release. `preset` and `axes` are those of `apps.persona`, `models` is by
    role."""

    persona: str
    models: dict[str, str]
    preset: str
    axes: dict[str, float]
    greeting: str
    suggestions: tuple[str, ...]
    languages: tuple[str, ...]


class GateRef(Part):
    """The active version of a gate; `everywhere`: it belongs to all chatbots of the company."""

    name: str
    everywhere: bool
    version: int


class Recorded(Part):
    """What the company owned when the release was taken, as signed policy or approved content. It is compared, never
    served: a release switches none of it. `goal` is the id of the active goal, or empty; `skills` are content hashes by
    name; `knowledge` is a digest of the newest version of each document."""

    goal: str
    gates: tuple[GateRef, ...]
    skills: dict[str, str]
    documents: int
    knowledge: str


class Snapshot(Part):
    served: Served
    recorded: Recorded

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @property
    def sha256(self) -> str:
        """SHA-256 of the canonical JSON."""
        return sha256_hex(self.as_json())


@dataclass(frozen=True)
class ServedRelease:
    """The release of a conversation."""

    pk: UUID
    number: int
    served: Served


@dataclass(frozen=True)
class ServedSettings:
    """What a conversation is served by. `release` is None, and `number` 0, while the deployment has no release; `axes`
    None without a personality."""

    release: UUID | None
    number: int
    persona: str
    model_names: Mapping[str, str]
    axes: Mapping[Any, float] | None
    greeting: str
    suggestions: tuple[str, ...]
    languages: tuple[str, ...]

    def model_for(self, role: str) -> str:
        """The name of the model for this role; the built-in one by default."""
        return str(self.model_names.get(role) or GROUNDED)


@dataclass(frozen=True)
class Change:
    """One difference. `name` is the role, axis, gate or skill where a kind has several; values are texts, "" for
    none."""

    kind: ChangeKind
    name: str
    before: str
    after: str
