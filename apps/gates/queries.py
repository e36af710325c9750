"""Which gates are in force for a deployment? Read once a turn, before its first step (spec 5.1 step 0).

And for those who look after them: all gates with their versions.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet
from pydantic import ValidationError

from apps.gates import guardrails
from apps.gates.enums import GateLane, GateProvider, GateTrigger
from apps.gates.models import Gate, GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.signals import ExtraGates, counting_gates
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Deployment
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

# The sealed list of what is in force comes first, then each gate that the rows say is.
_ACTIVE = """
    SELECT version, signature, items FROM tenants_policyseal WHERE tenant_id = %s AND kind = 'gates'
    UNION ALL (
    SELECT 0, gate.id::text, json_build_object('deployment', gate.deployment_id, 'name', gate.name,
        'number', version.number, 'order', version."order", 'content', version.content)::text
    FROM gates_gate gate JOIN gates_gateversion version ON version.gate_id = gate.id AND version.number = gate.active
    WHERE gate.tenant_id = %s AND (gate.deployment_id = %s OR gate.deployment_id IS NULL)
    ORDER BY gate.deployment_id NULLS FIRST, version."order", gate.name)
"""
# What a content that is no gate is taken for: it must not open what it may have guarded.
_SAID = (GateTrigger.EVERY_USER_MESSAGE, GateTrigger.EVERY_AGENT_RESPONSE)
_EVERYTHING = (GateTrigger.EVERY_USER_MESSAGE, GateTrigger.EVERY_AGENT_RESPONSE, GateTrigger.ON_TOOL_CALL)


def active_gates(deployment_id: UUID) -> tuple[GateSpec, ...]:
    """The tenant's gates for all deployments first, then the deployment's own, each by order and name.

    One statement, so that list and rows are of one moment; the gates are made once for each state the rows ever had.
    """
    tenant_id = current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE, [tenant_id, tenant_id, deployment_id])
        rows = cursor.fetchall()
    seals = [row for row in rows if row[0]]
    sealed = policy_seals.verified_items(tenant_id, PolicyKind.GATES, seals)
    found = tuple((name, text) for version, name, text in rows if not version)
    if sealed is None:
        return (*blocking_gates("policy_seal"), *_specs(found, "", "")[0])
    specs, doubts = _specs(found, seals[0][2], str(deployment_id))
    for name, problem in doubts:
        policy_seals.report_untrusted(PolicyKind.GATES, name, problem)
    return specs


@functools.lru_cache(maxsize=256)
def _specs(
    rows: tuple[tuple[str, str], ...], sealed: str, deployment_id: str
) -> tuple[tuple[GateSpec, ...], tuple[tuple[str, str], ...]]:
    """The gates of these rows, and which are not what was put in force. A row that is not certified blocks in the place
    of the gate, and so does a gate that was put in force and has no row. Made once for each state of rows and list."""
    wanted: dict[str, str] = json.loads(sealed) if sealed else {}
    specs: list[GateSpec] = []
    doubts: list[tuple[str, str]] = []
    for gate_id, text in rows:
        row = json.loads(text)
        name = _sealed_name(gate_id, row["deployment"])
        if not sealed or wanted.pop(name, "") == policy_seals.digest(row):
            specs.extend(specs_of(row["name"], row["content"]))
        else:
            doubts.append((name, "forged"))
            specs.extend(blocking_gates(row["name"]))
    for name in wanted:
        if name.endswith(("@all", f"@{deployment_id}")):
            doubts.append((name, "missing"))
            specs.extend(blocking_gates(name))
    return tuple(specs), tuple(doubts)


def blocking_gates(name: str) -> tuple[GateSpec, ...]:
    """Blocks at every place where a gate may stand, because what stood here is not known."""
    return _blocking(name, {})


def sealed_name(gate: Gate) -> str:
    """What the gate is called in the sealed list: with its place, so that one that is gone blocks only there."""
    return _sealed_name(str(gate.pk), gate.deployment_id)


def _sealed_name(gate_id: str, deployment_id: object) -> str:
    return f"{gate_id}@{deployment_id or 'all'}"


def sealed_value(gate: Gate, version: GateVersion) -> dict[str, Any]:
    """All that decides what the gate does while this version is in force."""
    return {
        "deployment": str(gate.deployment_id) if gate.deployment_id else None,
        "name": gate.name,
        "number": version.number,
        "order": version.order,
        "content": version.content,
    }


def sealed_gates() -> dict[str, dict[str, Any]]:
    """What the rows say is in force in this tenant, for `manage.py certify`."""
    rows = GateVersion.objects.select_related("gate").filter(number=F("gate__active"))
    return {sealed_name(row.gate): sealed_value(row.gate, row) for row in rows}


def specs_of(name: str, content: Mapping[str, Any]) -> tuple[GateSpec, ...]:
    """The gate that this content is. One that is no gate any more becomes one that nobody provides, at each place where
    it could have stood."""
    try:
        return (GateSpec(name=name, **content),)
    except (ValidationError, TypeError):
        return _blocking(name, content)


def _blocking(name: str, content: Mapping[str, Any]) -> tuple[GateSpec, ...]:
    known = content if isinstance(content, Mapping) else {}
    blank = GateSpec(name="x", on=GateTrigger.EVERY_USER_MESSAGE, provider=GateProvider.CUSTOM)
    step, on = known.get("after_step"), known.get("on")
    places: tuple[Any, ...] = (on,) if on in GateTrigger.values else _EVERYTHING
    said = known.get("on_block")
    told = {"name": name, "on_block": said if isinstance(said, str) else "report", "after_step": step}
    return tuple(blank.model_copy(update={**told, "on": GateTrigger(place).value}) for place in places)


def gate_sets_with(version: GateVersion, deployment_id: UUID) -> tuple[tuple[GateSpec, ...], tuple[GateSpec, ...]]:
    """The gates in force for a deployment, and what they would be with this version in its gate's place. Raises
    pydantic's ValidationError for a content that is no gate."""
    found = GateVersion.objects.select_related("gate").filter(number=F("gate__active"))
    rows = list(found.filter(Q(gate__deployment_id=deployment_id) | Q(gate__deployment_id=None)))
    version.to_spec()
    others = [row for row in rows if row.gate_id != version.gate_id]
    return _in_order(rows), _in_order([*others, version])


def _in_order(rows: Iterable[GateVersion]) -> tuple[GateSpec, ...]:
    """As `_ACTIVE` orders them."""
    ordered = sorted(rows, key=lambda row: (row.gate.deployment_id is not None, row.order, row.gate.name))
    return tuple(spec for row in ordered for spec in _made(row))


def max_gates_per_turn(version: GateVersion) -> tuple[int, str]:
    """How many policy gates one turn would ask with this version in force, on the deployment where it is most, and that
    deployment's title. Gates of its goal count like rows."""
    places = Deployment.objects.order_by("title")
    if version.gate.deployment_id is not None:
        places = places.filter(pk=version.gate.deployment_id)
    rows = list(GateVersion.objects.select_related("gate").filter(number=F("gate__active")))
    in_force = [*(row for row in rows if row.gate_id != version.gate_id), version]
    counted = [(_asked_at(place.pk, in_force), place.title) for place in places]
    return max(
        counted, default=(count_gates_per_turn(spec for row in in_force for spec in _made(row)), "any deployment")
    )


def _asked_at(deployment_id: UUID, rows: Iterable[GateVersion]) -> int:
    extra = ExtraGates()
    counting_gates(deployment_id, extra)
    own = [spec for row in rows if row.gate.deployment_id in (None, deployment_id) for spec in _made(row)]
    return count_gates_per_turn([*own, *extra.gates], extra.tools)


def count_gates_per_turn(gates: Iterable[GateSpec], tools: Iterable[str] = ()) -> int:
    """How many of these policy gates a turn asks about a message, its answer and one look-up: of the `tools` that a
    turn may call, the one that most of them watch."""
    binding = [gate for gate in gates if gate.lane == GateLane.POLICY]
    calls = [gate for gate in binding if gate.on == GateTrigger.ON_TOOL_CALL]
    watched = (sum(not gate.tools or tool in gate.tools for gate in calls) for tool in tools)
    return sum(gate.on in _SAID for gate in binding) + max(watched, default=0)


def _made(row: GateVersion) -> tuple[GateSpec, ...]:
    return specs_of(row.gate.name, row.content)


def all_gates() -> QuerySet[Gate]:
    """Every gate of the tenant with its deployment, those for all deployments first."""
    rows: QuerySet[Gate] = Gate.objects.select_related("deployment")
    return rows.order_by("deployment__title", "name")


def gates_with_newest() -> list[tuple[Gate, GateVersion]]:
    """`all_gates`, each with its newest version; two statements."""
    newest = {row.gate_id: row for row in GateVersion.objects.filter(number=F("gate__newest"))}
    return [(gate, newest[gate.pk]) for gate in all_gates() if gate.pk in newest]


def gates_missing_library(others: Iterable[GateSpec]) -> list[str]:
    """Which gates in force, and which of `others`, block because guardrails-ai is not installed, by name."""
    if guardrails.is_installed():
        return []
    rows = GateVersion.objects.filter(number=F("gate__active"), content__provider=GateProvider.GUARDRAILS_AI)
    told = [gate.name for gate in others if gate.provider == GateProvider.GUARDRAILS_AI]
    return sorted({*rows.values_list("gate__name", flat=True), *told})


def gate_by_id(gate_id: UUID) -> Gate:
    """Raises `NotFound`."""
    found: Gate | None = Gate.objects.select_related("deployment").filter(pk=gate_id).first()
    if found is None:
        raise NotFound("gate")
    return found


def versions_of(gate: Gate) -> list[GateVersion]:
    """Newest first."""
    return list(gate.versions.select_related("gate").order_by("-number"))


def version_of(gate: Gate, number: int) -> GateVersion:
    """Raises `NotFound`."""
    found: GateVersion | None = gate.versions.select_related("gate").filter(number=number).first()
    if found is None:
        raise NotFound("version of this gate")
    return found
