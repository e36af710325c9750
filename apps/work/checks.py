"""Collect the independent checks that decide whether work is done: those that skills declare for their tools, and the
plan's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apps.skills import queries as skills
from apps.skills.schemas import ToolSpec
from apps.tenants.queries import is_simulated
from apps.work import document_tools
from apps.work.schemas import VerificationCheck, WorkItemSpec
from sandbox.spec import Mount


@dataclass(frozen=True)
class CheckRound:
    """Checks that run with one skill's files mounted."""

    checks: tuple[VerificationCheck, ...]
    mounts: Mapping[str, Mount]


def check_rounds(
    spec: WorkItemSpec, tools: Sequence[ToolSpec], customer: str, artifacts: Mapping[str, bytes]
) -> tuple[CheckRound, ...]:
    """Return what verification runs, in the plan's order: a skill's own checks with that skill's files and records as
    they are now; the plan's other checks with the first skill's. Inside a scope, after the attempt."""
    calls = [{"tool": call.tool, "args": call.args} for call in spec.calls]
    by_skill: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        by_skill.setdefault(tool.skill, []).append(tool)
    if not by_skill:
        return (CheckRound(tuple(within_reach(spec.verify)), {"artifacts": dict(artifacts)}),)
    rounds, remaining = [], within_reach(spec.verify)
    for position, own_tools in enumerate(reversed(by_skill.values()), start=1):
        last = position == len(by_skill)
        declared = within_reach(checks_of(own_tools))
        own = [check for check in remaining if last or check in declared]
        remaining = [check for check in remaining if check not in own]
        mounts = {**skills.verification_mounts(own_tools, customer, calls), "artifacts": dict(artifacts)}
        mounts |= document_tools.check_mounts(own_tools, spec.calls)
        rounds.append(CheckRound(tuple(own), mounts))
    # Collected backwards, so that the first skill takes what no other claimed.
    return tuple(reversed(rounds))


def within_reach(checks: Sequence[VerificationCheck]) -> list[VerificationCheck]:
    """Return the checks as they run here: in a copy for simulations none of them gets the network."""
    if not any(check.network for check in checks) or not is_simulated():
        return list(checks)
    return [check.model_copy(update={"network": False}) for check in checks]


def checks_of(tools: Sequence[ToolSpec]) -> list[VerificationCheck]:
    """Return the checks that skills declare for these tools; a plan cannot drop them."""
    checks = [VerificationCheck(**check.model_dump(exclude_none=False)) for tool in tools for check in tool.verify]
    return [check for position, check in enumerate(checks) if check not in checks[:position]]
