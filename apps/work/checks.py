"""What decides from outside whether work is done? The checks that skills declare for their tools, and the plan's
own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.skills import queries as skills
from apps.skills.schemas import ToolSpec
from apps.work import document_tools
from apps.work.schemas import VerificationCheck, WorkItemSpec
from kernel.sandbox.spec import Mount


@dataclass(frozen=True)
class CheckRound:
    """Checks that run beside one skill's files."""

    checks: tuple[VerificationCheck, ...]
    mounts: Mapping[str, Mount]


def check_rounds(
    spec: WorkItemSpec, tools: Sequence[ToolSpec], customer: str, artifacts: Mapping[str, bytes]
) -> tuple[CheckRound, ...]:
    """What verification runs, in the plan's order: a skill's own checks beside that skill's files, records as they are
    now. The plan's other checks run beside the first skill's. Inside a scope, after the attempt."""
    calls = [{"tool": call.tool, "args": call.args} for call in spec.calls]
    by_skill: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        by_skill.setdefault(tool.skill, []).append(tool)
    if not by_skill:
        return (CheckRound(tuple(spec.verify), {"artifacts": dict(artifacts)}),)
    found, left = [], list(spec.verify)
    for position, own_tools in enumerate(reversed(by_skill.values()), start=1):
        last = position == len(by_skill)
        own = [check for check in left if last or check in checks_of(own_tools)]
        left = [check for check in left if check not in own]
        mounts = {**skills.verification_mounts(own_tools, customer, calls), "artifacts": dict(artifacts)}
        mounts |= document_tools.check_mounts(own_tools, spec.calls)
        found.append(CheckRound(tuple(own), mounts))
    return tuple(reversed(found))


def checks_of(tools: Sequence[ToolSpec]) -> list[VerificationCheck]:
    """The checks that skills declare for their tools; a plan cannot drop them."""
    found = [VerificationCheck(**check.model_dump(exclude_none=False)) for tool in tools for check in tool.verify]
    return [check for position, check in enumerate(found) if check not in found[:position]]
