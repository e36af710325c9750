"""The policy that a turn runs under: read once when it begins, frozen until it ends (spec 5.1 step 0).

System gates (rows) come before the active goal's. Levels are the goal's own; of a goal without any, the deployment's
rows; without these there is one, `public`, that reaches knowledge only. Escalations are the goal's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from apps.access.levels import KNOWLEDGE_TOOL, levels_of
from apps.access.rules import Level
from apps.connections.queries import usable_names
from apps.gates.enums import GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.providers.script import claim_for
from apps.gates.queries import active_gates
from apps.gates.schemas import AccessLevel, GateSpec
from apps.knowledge.provider_vectors import search_plan
from apps.sessions.state import Policy
from apps.skills import outside_tools, roles
from apps.skills import queries as skills
from apps.skills.schemas import OutsideToolSpec, ToolSpec
from apps.tenants.models import Deployment
from apps.tenants.queries import signed_gates
from apps.toolservers.web.queries import search_terms
from apps.toolservers.web.schemas import SearchTerms
from apps.work.queries import active_goal_spec
from apps.work.schemas import WorkItemSpec
from kernel.tenancy import Read, read_together
from sandbox.spec import Mount


def load(deployment: Deployment, *others: Read[Any]) -> Policy:
    """Inside the tenant's scope; `others` are read in the same round trip."""
    goal, gates, web = active_goal_spec(deployment), active_gates(deployment.pk), search_terms(deployment.pk)
    levels, search = levels_of(deployment), search_plan()
    read_together(goal, gates, levels, web, search, *others)
    return replace(_policy(goal.value, gates.value, levels, web.value), search=search.value)


def load_usable(deployment: Deployment, *others: Read[Any]) -> Policy:
    """`load` without the tools whose outside account is not connected just now."""
    policy = load(deployment, *others)
    if not any(tool.connection for tool in policy.tools):
        return policy
    usable = usable_names()
    return replace(
        policy, tools=tuple(tool for tool in policy.tools if not tool.connection or tool.connection in usable)
    )


def load_with(deployment: Deployment, *systems: tuple[GateSpec, ...]) -> tuple[Policy, ...]:
    """What the policy would be with each of these sets in the place of the gates of rows. Inside the tenant's scope."""
    goal, web, levels = active_goal_spec(deployment), search_terms(deployment.pk), levels_of(deployment)
    read_together(goal, web, levels)
    return tuple(_policy(goal.value, system, levels, web.value) for system in systems)


def _policy(
    goal: WorkItemSpec | None,
    system: tuple[GateSpec, ...],
    own_levels: Read[Mapping[str, AccessLevel]],
    web: SearchTerms | None,
) -> Policy:
    """The goal's own levels hold; of a goal without any, and without a goal, the deployment's."""
    levels = (goal.access_levels if goal else {}) or own_levels.value
    installed = skills.versions_in_use(goal.skills) if goal else ()
    own = skills.tools_from(installed, goal.skills) if goal else ()
    tools = outside_tools.with_builtin_tools(own, outside_tools.web_search_tool_of(web))
    return Policy(
        gates=(*system, *(goal.gates if goal else ())),
        levels=with_outside(levels, tools),
        escalations=goal.escalation if goal else {},
        skills=tuple(goal.skills) if goal else (),
        tools=tools,
        known=roles.active_skills_of(installed),
    )


def as_named(policy: Policy, said: Iterable[str]) -> Policy:
    """Return the policy for a conversation in which a visitor `said` this: a skill with manual activation is left out
    of every level until it is named (spec 10.1 `activation`)."""
    unnamed = roles.unnamed_manual_skills(policy.known, said)
    if not unnamed:
        return policy
    held = {tool.name for tool in policy.tools if tool.skill in unnamed}
    return replace(
        policy,
        levels={name: _without(level, held) for name, level in policy.levels.items()},
        tools=tuple(tool for tool in policy.tools if tool.name not in held),
        known=tuple(skill for skill in policy.known if skill.ref not in unnamed),
    )


def _without(level: Level, held: Collection[str]) -> Level:
    return AccessLevel(
        tools=[tool for tool in level.tools if tool not in held],
        requires=list(level.requires),
        expires_after=level.expires_after,
    )


def with_outside(levels: Mapping[str, AccessLevel], tools: Iterable[ToolSpec]) -> Mapping[str, AccessLevel]:
    """The levels, each with the outside tools that were accepted for it or for one below it. A tool that was accepted
    for a level that is not here is in none but those that name it."""
    least = {tool.name: tool.level for tool in tools if isinstance(tool, OutsideToolSpec) and tool.level in levels}
    if not least:
        return levels
    order = list(levels)
    more = {name: [tool for tool, low in least.items() if order.index(low) <= order.index(name)] for name in order}
    return {
        name: level.model_copy(update={"tools": list(dict.fromkeys([*level.tools, *more[name]]))})
        for name, level in levels.items()
    }


def known_tools(deployment: Deployment) -> frozenset[str]:
    """What a level of the deployment may name: its goal's tools, and the search in documents."""
    return frozenset(tool.name for tool in load(deployment).tools) | {KNOWLEDGE_TOOL}


def known_gates(deployment: Deployment) -> frozenset[str]:
    """What a level of the deployment may ask for: gates that look at what a visitor writes, its own and its goal's, and
    those that a site's key passes."""
    gates = (gate.name for gate in load(deployment).gates if gate.on == GateTrigger.EVERY_USER_MESSAGE)
    return frozenset(gates) | signed_gates(deployment.pk)


def level_gates(policy: Policy) -> frozenset[str]:
    """The gates that some level requires: without a claim they withhold, and do not block (contract silas 16)."""
    return frozenset(gate for level in policy.levels.values() for gate in level.requires)


def asks_models(policy: Policy, trigger: str) -> bool:
    """Whether a gate of `trigger` waits for a model."""
    return any(gate.on == trigger and PROVIDERS[gate.provider].asks_model for gate in policy.gates)


def gate_files(
    policy: Policy, gates: tuple[GateSpec, ...], context: Mapping[str, object]
) -> dict[str, dict[str, Mount]]:
    """What each script gate may see: its skill's folder and, of the books it declares, the rows that fit what the
    visitor claims; read-only. Inside a scope.
    """
    return {gate.name: skills.gate_mounts(gate, policy.skills, claimed=_claimed(gate, context)) for gate in gates}


def _claimed(gate: GateSpec, context: Mapping[str, object]) -> Mapping[str, str] | None:
    claim = claim_for(gate, context)
    return claim.as_values() if claim else None
