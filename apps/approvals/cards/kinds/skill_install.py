"""Versions of skills. Opened and worded by `apps.skills.trials`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.schemas import BoundPayload, Key, Line, Prose
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _


class SkillPayload(BoundPayload):
    """A version of a skill, bound by the hashes of its content and of its validation report."""

    skill: Key
    content_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SourceFile(FrozenModel):
    path: Annotated[str, Field(min_length=1, max_length=200)]
    text: Prose


class SkillBody(FrozenModel):
    """What a reviewer reads of a version: its instructions, its scripts, and its diff from the version in use."""

    version: Annotated[str, Field(max_length=40)] = ""
    description: Annotated[str, Field(max_length=1024)] = ""
    source: Annotated[str, Field(max_length=300)] = ""
    scripts: list[Key] = Field(default_factory=list)
    tools: list[Key] = Field(default_factory=list)
    report: Annotated[list[Line], Field(max_length=100)] = Field(default_factory=list)
    instructions: Prose = ""
    files: Annotated[list[SourceFile], Field(max_length=20)] = Field(default_factory=list)
    diff: Annotated[str, Field(max_length=60_000)] = ""


class SkillInstall(Kind):
    kind = CardKind.SKILL_INSTALL
    label = _("New skill")
    payload = SkillPayload
    body = SkillBody
    scopes = frozenset({ApprovalScope.SKILL_INSTALL})
    pace = Pace.CALM
