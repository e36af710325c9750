"""What does each agent see of a skill? The proxy name and description of what it may route to, within a budget; the
planner the instructions; the executor the scripts that may run (spec 10.3, progressive disclosure). Reads inside the
caller's scope; verification sees nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from apps.skills import queries
from apps.skills.models import SkillVersion
from kernel.llm.context.budget import count_tokens


@dataclass(frozen=True)
class Metadata:
    """One skill as the proxy sees it."""

    name: str
    description: str

    @property
    def line(self) -> str:
        return f"- {self.name}: {self.description}"

    @cached_property
    def tokens(self) -> int:
        return count_tokens(self.line) + 1


def proxy_view(refs: Iterable[str], *, budget: int, named: Collection[str] = ()) -> tuple[Metadata, ...]:
    """Name and description of the skills that may be routed to, the first the most wanted; at most `budget` model
    tokens (2 % of the context, `TokenBudget.metadata_tokens`). `named`: skills that a person asked for by name; what
    says `activation: manual` is there only then. Raises `SilasError("skill_missing")`.
    """
    found = [version for version in queries.versions(refs) if may_be_routed_to(version, named)]
    return within_budget(
        [Metadata(version.name, queries.manifest_of(version).description) for version in found], budget
    )


def may_be_routed_to(version: SkillVersion, named: Collection[str]) -> bool:
    """`auto` always, `manual` when a person named it, `background` never: it is there for its instructions."""
    match queries.manifest_of(version).activation:
        case "auto":
            return True
        case "manual":
            return version.name in named
        case _:
            return False


def within_budget(skills: Sequence[Metadata], budget: int) -> tuple[Metadata, ...]:
    """As many as fit from the front. The lowest in priority go first, whole: the same skills give the same view, and
    nothing further down slips in because it is short."""
    left, kept = budget, []
    for skill in skills:
        left -= skill.tokens
        if left < 0:
            break
        kept.append(skill)
    return tuple(kept)


def planner_view(refs: Iterable[str]) -> tuple[str, ...]:
    """The whole instructions of each skill, with the skills it says it goes together with among these."""
    versions = queries.versions(refs)
    names = {version.name for version in versions}
    return tuple(_with_companions(version, names) for version in versions)


def _with_companions(version: SkillVersion, names: Collection[str]) -> str:
    companions = [name for name in queries.manifest_of(version).composes_with if name in names]
    return f"{version.body}\n\nGoes together with: {', '.join(companions)}.".strip() if companions else version.body


def executor_view(refs: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By skill, the scripts that a call may run; nothing else in the folder is ever started."""
    return {
        version.name: tuple(dict.fromkeys(tool.script for tool in queries.tools_for([_exactly(version)])))
        for version in queries.versions(refs)
    }


def _exactly(version: SkillVersion) -> str:
    return queries.pinned_ref(version)
