"""What each agent sees of a skill: the proxy name and description of what it may route to, within a budget; the planner
the instructions; the executor these and the scripts that may run (spec 10.3, progressive disclosure).

Verification sees nothing. Functions that read rows run inside the caller's scope; the rest is decided from values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from apps.skills import queries, rules
from apps.skills.models import SkillVersion
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from llm.briefing import SkillBrief
from llm.context.budget import count_tokens

# The share of a planner's window that the platform's own instructions may take (contract silas 7, `system_max`).
INSTRUCTION_TOKENS = 8_000
_WORDS = re.compile(r"[^\W_]+")


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


@dataclass(frozen=True)
class ActiveSkill:
    """One skill in use, as a whole turn knows it. `ref` is pinned; `called` are the names a person may know it by."""

    ref: str
    metadata: Metadata
    activation: str
    called: tuple[str, ...]
    companions: tuple[str, ...]
    body: str

    @property
    def name(self) -> str:
        return self.metadata.name


def active_skills(refs: Iterable[str]) -> tuple[ActiveSkill, ...]:
    """Return those of the skills that are in use, in this order, in one statement. What was switched off is left
    out."""
    return active_skills_of(queries.versions_in_use(refs))


def active_skills_of(versions: Iterable[SkillVersion]) -> tuple[ActiveSkill, ...]:
    return tuple(_active_skill(version) for version in versions)


def _active_skill(version: SkillVersion) -> ActiveSkill:
    manifest = queries.manifest_of(version)
    return ActiveSkill(
        ref=queries.pinned_ref(version),
        metadata=Metadata(version.name, manifest.description),
        activation=manifest.activation,
        called=tuple(filter(None, (version.name, manifest.ui.display_name))),
        companions=tuple(manifest.composes_with),
        body=version.body,
    )


# --- activation


def unnamed_manual_skills(skills: Iterable[ActiveSkill], messages: Iterable[str]) -> frozenset[str]:
    """Return the references of skills with `activation: manual` that no text of `said` names.

    A skill is named by its name or display name, ignoring case and hyphens.
    """
    manual = [skill for skill in skills if skill.activation == "manual"]
    texts = [_as_words(text) for text in messages] if manual else []
    return frozenset(skill.ref for skill in manual if not any(_is_named(skill, text) for text in texts))


def _is_named(skill: ActiveSkill, text: str) -> bool:
    return any(words.strip() and words in text for words in map(_as_words, skill.called))


def _as_words(text: str) -> str:
    """Put words between single spaces, so that no name is found inside of a longer word."""
    return f" {' '.join(_WORDS.findall(text.casefold()))} "


# --- the three views


def proxy_view(skills: Iterable[ActiveSkill], *, budget: int) -> tuple[Metadata, ...]:
    """Return name and description of what may be routed to, most relevant first; at most `budget` model tokens (2 % of
    the context, `TokenBudget.metadata_tokens`). A skill with `activation: background` is there for its instructions
    only."""
    return within_budget([skill.metadata for skill in skills if skill.activation != "background"], budget)


def within_budget(skills: Sequence[Metadata], budget: int) -> tuple[Metadata, ...]:
    """Return as many as fit from the front. The lowest in priority are dropped first, whole: the same skills give the
    same view, and a shorter skill further down never replaces a longer one."""
    left, kept = budget, []
    for skill in skills:
        left -= skill.tokens
        if left < 0:
            break
        kept.append(skill)
    return tuple(kept)


def planner_view(
    skills: Sequence[ActiveSkill], *, wanted: Collection[str] = (), budget: int = INSTRUCTION_TOKENS
) -> tuple[SkillBrief, ...]:
    """Return the whole instructions of each skill, with its companions among these skills.

    `wanted`: references whose tools were asked for; they come first, then their companions, so that beyond `budget`
    model tokens those are dropped that were not asked for. A skill that does not fit is left out whole.
    """
    names, left, kept = {skill.name for skill in skills}, budget, []
    for skill in sorted(skills, key=lambda row: _rank(row, skills, wanted)):
        brief = SkillBrief(skill.name, skill.metadata.description, _with_companions(skill, names))
        left -= count_tokens(brief.instructions)
        if left < 0:
            break
        kept.append(brief)
    return tuple(kept)


def _rank(skill: ActiveSkill, skills: Sequence[ActiveSkill], wanted: Collection[str]) -> int:
    if skill.ref in wanted:
        return 0
    return 1 if any(skill.name in other.companions for other in skills if other.ref in wanted) else 2


def _with_companions(skill: ActiveSkill, names: Collection[str]) -> str:
    companions = [name for name in skill.companions if name in names]
    return f"{skill.body}\n\nGoes together with: {', '.join(companions)}.".strip() if companions else skill.body


def instructions(refs: Iterable[str]) -> tuple[SkillBrief, ...]:
    """Return for a planner of work all of its skills, as they were approved. Raises `SilasError("skill_missing")`."""
    versions = queries.versions(refs)
    return planner_view(active_skills_of(versions), budget=INSTRUCTION_TOKENS * max(1, len(versions)))


def executor_view(refs: Iterable[str]) -> tuple[SkillBrief, ...]:
    """Return the instructions with the scripts that a call may start; no other file of the folder is ever started.
    Raises `SilasError("skill_missing")`."""
    versions = queries.versions(refs)
    names = {version.name for version in versions}
    return tuple(_executor_brief(version, names) for version in versions)


def _executor_brief(version: SkillVersion, names: Collection[str]) -> SkillBrief:
    scripts = [f"- {tool.name}: {tool.script or tool.executor}" for tool in queries.tools_of(version)]
    ours = "\n".join(["Its tools and the scripts they start:", *scripts]) if scripts else ""
    skill = _active_skill(version)
    return SkillBrief(skill.name, skill.metadata.description, f"{_with_companions(skill, names)}\n\n{ours}".strip())


# --- what a child item has


@dataclass(frozen=True)
class InheritedSkills:
    """The skills of a parent (a goal, a project, the work that is undone). `background`: those of them that are there
    for their instructions only."""

    refs: tuple[str, ...] = ()
    background: tuple[str, ...] = ()

    def to(self, used: Iterable[str]) -> list[str]:
        """Return a child's skills: those of its parent whose tools it calls, and the background ones.
        Raises `SilasError("skill_not_inherited")`: a child never has what its parent has not."""
        wanted = list(dict.fromkeys(used))
        parents = {*self.refs, *(rules.split_reference(ref)[0] for ref in self.refs if "@" not in ref)}
        for ref in wanted:
            if ref not in parents and rules.split_reference(ref)[0] not in parents:
                raise SilasError(ErrorCode.SKILL_NOT_INHERITED, extra={"skill": ref})
        return list(dict.fromkeys([*wanted, *self.background]))


def inherited_skills(refs: Sequence[str]) -> InheritedSkills:
    """Return what a child may inherit of these references of a parent."""
    background = [skill.ref for skill in active_skills(refs) if skill.activation == "background"]
    return InheritedSkills(tuple(refs), tuple(background))
