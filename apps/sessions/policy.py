"""Which policy does a turn run under? Read once when it begins, frozen until it ends (spec 5.1 step 0).

System gates (rows) come before the active goal's; levels and escalations are the goal's. Without a goal there is one
level, `public`, that reaches knowledge only.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.gates.enums import GateProvider
from apps.gates.providers import claim_for, needs_claim
from apps.gates.queries import active_gates
from apps.gates.schemas import AccessLevel, GateSpec
from apps.sessions.access import PUBLIC
from apps.sessions.state import Policy
from apps.skills import queries as skills
from apps.tenants.models import Deployment
from apps.work.queries import active_goal_spec
from kernel.sandbox.spec import Mount

KNOWLEDGE_TOOL = "knowledge_search"
_BARE_LEVELS = {PUBLIC: AccessLevel(tools=[KNOWLEDGE_TOOL])}


def load(deployment: Deployment) -> Policy:
    """Inside the tenant's scope."""
    goal = active_goal_spec(deployment)
    system = active_gates(deployment.pk)
    return Policy(
        gates=(*system, *(goal.gates if goal else ())),
        levels=(goal.access_levels if goal else {}) or _BARE_LEVELS,
        escalations=goal.escalation if goal else {},
        skills=tuple(goal.skills) if goal else (),
        tools=skills.tools_for(goal.skills) if goal else (),
    )


def level_gates(policy: Policy) -> frozenset[str]:
    """The gates that some level requires: without a claim they withhold, and do not block (contract silas 16)."""
    return frozenset(gate for level in policy.levels.values() for gate in level.requires)


def scripts_due(policy: Policy, trigger: str, context: Mapping[str, object]) -> tuple[GateSpec, ...]:
    """The script gates of `trigger` that will really run: an identity check without a claim does not."""
    scripts = (gate for gate in policy.gates if gate.on == trigger and gate.provider == GateProvider.SCRIPT)
    return tuple(gate for gate in scripts if not needs_claim(gate) or claim_for(gate, context) is not None)


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
