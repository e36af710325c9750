"""Load the active gates of a deployment, once per turn before its first step (spec 5.1 step 0), and list gates with
their versions for administrators.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from uuid import UUID

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
from kernel.tenancy import Read, current_tenant_id
from kernel.tenancy.reads import Rows

# The sealed list of active gates first, then each active gate by the rows.
_ACTIVE = """
    SELECT version, signature, items FROM tenants_policyseal WHERE tenant_id = %s AND kind = 'gates'
    UNION ALL (
    SELECT 0, gate.id::text, json_build_object('deployment', gate.deployment_id, 'name', gate.name,
        'number', version.number, 'order', version."order", 'content', version.content)::text
    FROM gates_gate gate JOIN gates_gateversion version ON version.gate_id = gate.id AND version.number = gate.active
    WHERE gate.tenant_id = %s AND (gate.deployment_id = %s OR gate.deployment_id IS NULL)
    ORDER BY gate.deployment_id NULLS FIRST, version."order", gate.name)
"""
_MESSAGES = (GateTrigger.EVERY_USER_MESSAGE, GateTrigger.EVERY_AGENT_RESPONSE)
# Triggers at which an invalid gate blocks: it must not open what it may have guarded.
_ALL_TRIGGERS = (GateTrigger.EVERY_USER_MESSAGE, GateTrigger.EVERY_AGENT_RESPONSE, GateTrigger.ON_TOOL_CALL)


def active_gates(deployment_id: UUID) -> Read[tuple[GateSpec, ...]]:
    """The tenant's gates for all deployments first, then the deployment's own, each by order and name.

    One statement, so that list and rows are from one snapshot; parsed gates are cached by the rows.
    """
    tenant_id = current_tenant_id()
    return Read(_ACTIVE, [tenant_id, tenant_id, deployment_id], partial(_active_specs, tenant_id, deployment_id))


def _active_specs(tenant_id: UUID, deployment_id: UUID, rows: Rows) -> tuple[GateSpec, ...]:
    seals = [row for row in rows if row[0]]
    sealed = policy_seals.verified_items(tenant_id, PolicyKind.GATES, seals)
    gates = tuple((gate_id, text) for version, gate_id, text in rows if not version)
    if sealed is None:
        return (*blocking_gates("policy_seal"), *_specs(gates, "", "")[0])
    specs, problems = _specs(gates, seals[0][2], str(deployment_id))
    for name, problem in problems:
        policy_seals.report_untrusted(PolicyKind.GATES, name, problem)
    return specs


@functools.lru_cache(maxsize=256)
def _specs(
    rows: tuple[tuple[str, str], ...], sealed: str, deployment_id: str
) -> tuple[tuple[GateSpec, ...], tuple[tuple[str, str], ...]]:
    """The gates of these rows, and the problems by name. A row that does not match the sealed list is replaced by a
    blocking gate, and so is a sealed gate without a row."""
    unmatched: dict[str, str] = json.loads(sealed) if sealed else {}
    specs: list[GateSpec] = []
    problems: list[tuple[str, str]] = []
    for gate_id, text in rows:
        row = json.loads(text)
        name = _sealed_name(gate_id, row["deployment"])
        # Without a trusted list a blocking gate stands in front of them already.
        if not sealed or unmatched.pop(name, "") == policy_seals.digest(row):
            specs.extend(specs_of(row["name"], row["content"]))
        else:
            problems.append((name, "forged"))
            specs.extend(blocking_gates(row["name"]))
    for name in unmatched:
        if name.endswith(("@all", f"@{deployment_id}")):
            problems.append((name, "missing"))
            specs.extend(blocking_gates(name))
    return tuple(specs), tuple(problems)


def blocking_gates(name: str) -> tuple[GateSpec, ...]:
    """Gates that block at every trigger, in place of one whose content is not trusted."""
    return _blocking(name, {})


def sealed_name(gate: Gate) -> str:
    """The gate's name in the sealed list. It includes the deployment, so that a missing gate blocks only there."""
    return _sealed_name(str(gate.pk), gate.deployment_id)


def _sealed_name(gate_id: str, deployment_id: object) -> str:
    return f"{gate_id}@{deployment_id or 'all'}"


def sealed_value(gate: Gate, version: GateVersion) -> dict[str, object]:
    """Everything that determines what the gate does while this version is active."""
    return {
        "deployment": str(gate.deployment_id) if gate.deployment_id else None,
        "name": gate.name,
        "number": version.number,
        "order": version.order,
        "content": version.content,
    }


def sealed_gates() -> dict[str, dict[str, object]]:
    """The tenant's active gates by the rows, for `manage.py certify`."""
    rows = GateVersion.objects.select_related("gate").filter(number=F("gate__active"))
    return {sealed_name(row.gate): sealed_value(row.gate, row) for row in rows}


def specs_of(name: str, content: Mapping[str, object]) -> tuple[GateSpec, ...]:
    """The gate with this content. An invalid content becomes gates without a provider, which block, at each trigger
    where it may have been."""
    try:
        return (GateSpec(name=name, **content),)
    except (ValidationError, TypeError):
        return _blocking(name, content)


def _blocking(name: str, content: Mapping[str, object]) -> tuple[GateSpec, ...]:
    known = content if isinstance(content, Mapping) else {}
    blank = GateSpec(name="x", on=GateTrigger.EVERY_USER_MESSAGE, provider=GateProvider.CUSTOM)
    step, on = known.get("after_step"), known.get("on")
    triggers: tuple[Any, ...] = (on,) if on in GateTrigger.values else _ALL_TRIGGERS
    on_block = known.get("on_block")
    fields = {"name": name, "on_block": on_block if isinstance(on_block, str) else "report", "after_step": step}
    return tuple(blank.model_copy(update={**fields, "on": GateTrigger(trigger).value}) for trigger in triggers)


def gate_sets_with(version: GateVersion, deployment_id: UUID) -> tuple[tuple[GateSpec, ...], tuple[GateSpec, ...]]:
    """The active gates of a deployment, and the same with this version in place of its gate's active one. Raises
    pydantic's ValidationError for an invalid content."""
    active = GateVersion.objects.select_related("gate").filter(number=F("gate__active"))
    rows = list(active.filter(Q(gate__deployment_id=deployment_id) | Q(gate__deployment_id=None)))
    # Raises for an invalid content, of which `_in_order` would make gates that block.
    version.to_spec()
    others = [row for row in rows if row.gate_id != version.gate_id]
    return _in_order(rows), _in_order([*others, version])


def _in_order(rows: Iterable[GateVersion]) -> tuple[GateSpec, ...]:
    """As `_ACTIVE` orders them."""
    ordered = sorted(rows, key=lambda row: (row.gate.deployment_id is not None, row.order, row.gate.name))
    return tuple(spec for row in ordered for spec in _specs_of_row(row))


def max_gates_per_turn(version: GateVersion) -> tuple[int, str]:
    """The highest number of policy gates that one turn would run with this version active, and the title of that
    deployment. Gates of the deployment's goal count as well."""
    deployments = Deployment.objects.order_by("title")
    if version.gate.deployment_id is not None:
        deployments = deployments.filter(pk=version.gate.deployment_id)
    rows = list(GateVersion.objects.select_related("gate").filter(number=F("gate__active")))
    active = [*(row for row in rows if row.gate_id != version.gate_id), version]
    counted = [(_count_at(deployment.pk, active), deployment.title) for deployment in deployments]
    return max(
        counted, default=(count_gates_per_turn(spec for row in active for spec in _specs_of_row(row)), "any deployment")
    )


def _count_at(deployment_id: UUID, rows: Iterable[GateVersion]) -> int:
    extra = ExtraGates()
    counting_gates(deployment_id, extra)
    own = [spec for row in rows if row.gate.deployment_id in (None, deployment_id) for spec in _specs_of_row(row)]
    return count_gates_per_turn([*own, *extra.gates], extra.tools)


def count_gates_per_turn(gates: Iterable[GateSpec], tools: Iterable[str] = ()) -> int:
    """How many of these policy gates a turn runs for a message, its answer and one tool call: the call of the tool in
    `tools` that most gates watch."""
    binding = [gate for gate in gates if gate.lane == GateLane.POLICY]
    calls = [gate for gate in binding if gate.on == GateTrigger.ON_TOOL_CALL]
    watched = (sum(not gate.tools or tool in gate.tools for gate in calls) for tool in tools)
    return sum(gate.on in _MESSAGES for gate in binding) + max(watched, default=0)


def _specs_of_row(row: GateVersion) -> tuple[GateSpec, ...]:
    return specs_of(row.gate.name, row.content)


def all_gates() -> QuerySet[Gate]:
    """Every gate of the tenant with its deployment, those for all deployments first."""
    rows: QuerySet[Gate] = Gate.objects.select_related("deployment")
    return rows.order_by("deployment__title", "name")


def gates_with_newest() -> list[tuple[Gate, GateVersion]]:
    """`all_gates`, each with its newest version; two statements."""
    newest = {row.gate_id: row for row in GateVersion.objects.filter(number=F("gate__newest"))}
    return [(gate, newest[gate.pk]) for gate in all_gates() if gate.pk in newest]


def active_versions() -> list[tuple[Gate, GateVersion]]:
    """The active gates in the order in which turns run them, each with its active version."""
    rows = GateVersion.objects.select_related("gate").filter(number=F("gate__active"))
    ordered = sorted(rows, key=lambda row: (row.gate.deployment_id is not None, row.order, row.gate.name))
    return [(row.gate, row) for row in ordered]


def free_name(wanted: str) -> str:
    """`wanted`, with a number if a gate of the tenant has this name."""
    taken = set(Gate.objects.filter(name__startswith=wanted).values_list("name", flat=True))
    names = (f"{wanted}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([wanted], names) if name not in taken)


def gates_missing_library(others: Iterable[GateSpec]) -> list[str]:
    """Names of the active gates and of `others` that block because guardrails-ai is not installed."""
    if guardrails.is_installed():
        return []
    rows = GateVersion.objects.filter(number=F("gate__active"), content__provider=GateProvider.GUARDRAILS_AI)
    names = [gate.name for gate in others if gate.provider == GateProvider.GUARDRAILS_AI]
    return sorted({*rows.values_list("gate__name", flat=True), *names})


def gate_by_id(gate_id: UUID) -> Gate:
    """Raises `NotFound`."""
    gate: Gate | None = Gate.objects.select_related("deployment").filter(pk=gate_id).first()
    if gate is None:
        raise NotFound()
    return gate


def versions_of(gate: Gate) -> list[GateVersion]:
    """Newest first."""
    return list(gate.versions.select_related("gate").order_by("-number"))


def version_of(gate: Gate, number: int) -> GateVersion:
    """Raises `NotFound`."""
    version: GateVersion | None = gate.versions.select_related("gate").filter(number=number).first()
    if version is None:
        raise NotFound()
    return version
