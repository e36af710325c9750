"""Do gates of before they had versions come through migrations 0002 to 0004 whole? Tried on a database of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections

from apps.gates.queries import specs_of
from apps.gates.schemas import GateSpec
from tests.old_databases import empty_database, looking, migrate

BEFORE, AFTER = ("gates", "0001_initial"), ("gates", "0004_versions_say_it")
SCRATCH = "gates_scratch"
CAP = GateSpec(
    name="cap",
    on="on_tool_call",
    type="numeric_range",
    config={"tools": ["refund"]},
    extract="amount",
    auto_approve={"min": 0, "max": 50},
    require_approval={"min": 50, "max": 250},
    block={"outside": [0, 250]},
    on_block="too_large",
)
STEP = GateSpec(name="step", on="after_step", after_step=2, type="string_match", allowed_values=["yes"])
SCRIPT = GateSpec(name="who", on="every_user_message", provider="script", check="v.py", check_expect={"equals": "ok"})
JUDGE = GateSpec(name="llm", on="every_agent_response", provider="llm", promote_to_policy=True, check_command=None)
GATES = {gate.name: gate for gate in (CAP, STEP, SCRIPT, JUDGE)}


@pytest.fixture(scope="module")
def alias(migrated: None, django_db_blocker: Any, superuser_dsn: str) -> Iterator[str]:
    with empty_database(SCRATCH, superuser_dsn=superuser_dsn, unblock=django_db_blocker.unblock) as alias:
        yield alias


def _row(gate: GateSpec) -> dict[str, Any]:
    values = gate.to_plan_dict()
    return {"validator" if name == "check" else name: value for name, value in values.items()}


@pytest.fixture(scope="module")
def old(alias: str) -> str:
    """Gates of two tenants as they stood, one switched off, one with a content that is no gate; carried over."""
    apps = migrate(alias, BEFORE)
    with looking(alias):
        rows = apps.get_model("gates", "Gate").objects.using(alias)
        tenants = apps.get_model("tenants", "Tenant").objects.using(alias)
        first, second = (tenants.create(name=slug, slug=slug) for slug in ("one", "two"))
        for order, gate in enumerate(GATES.values()):
            rows.create(tenant=first, order=order, **_row(gate))
        rows.create(tenant=second, enabled=False, **_row(CAP.model_copy(update={"name": "off"})))
        rows.create(tenant=second, name="broken", on="every_user_message", config={"pattern": "("}, validator="")
    migrate(alias, AFTER)
    return alias


def gate(alias: str, name: str) -> tuple[Any, ...]:
    with looking(alias) as cursor:
        cursor.execute("SELECT status, active, newest FROM gates_gate WHERE name = %s", [name])
        found: tuple[Any, ...] = cursor.fetchone()
    return found


def versions(alias: str, name: str) -> list[tuple[Any, ...]]:
    with looking(alias) as cursor:
        cursor.execute(
            'SELECT v.number, v."order", v.content, v.written_by,'
            " v.tenant_id = g.tenant_id, v.created_at = g.created_at"
            " FROM gates_gateversion v JOIN gates_gate g ON g.id = v.gate_id WHERE g.name = %s",
            [name],
        )
        return [(*row[:2], _loaded(row[2]), *row[3:]) for row in cursor.fetchall()]


def _loaded(content: Any) -> Any:
    return json.loads(content) if isinstance(content, str) else content


@pytest.mark.parametrize("name", sorted(GATES))
def test_old_gate_says_the_same_in_its_first_version(old: str, name: str) -> None:
    ((number, order, content, writer, same_tenant, same_time),) = versions(old, name)
    assert specs_of(name, content) == (GATES[name],)
    assert (number, order, writer, same_tenant, same_time) == (1, list(GATES).index(name), "system", True, True)


def test_old_gate_is_in_force(old: str) -> None:
    assert gate(old, "cap") == ("active", 1, 1)


def test_gate_that_was_switched_off_is_retired_and_keeps_what_it_said(old: str) -> None:
    assert gate(old, "off") == ("retired", None, 1)
    assert specs_of("cap", versions(old, "off")[0][2]) == (CAP,)


def test_broken_gate_still_blocks(old: str) -> None:
    assert [spec.provider for spec in specs_of("broken", versions(old, "broken")[0][2])] == ["custom"]


def test_history_is_closed_afterwards(old: str) -> None:
    with pytest.raises(DatabaseError, match="cannot be rewritten"), looking(old) as cursor:
        cursor.execute("UPDATE gates_gateversion SET content = '{}'")


def test_platform_s_look_ends_with_the_migration(old: str) -> None:
    with connections[old].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gates_gate")
        assert cursor.fetchone() == (0,)


def test_way_back_and_forth_leaves_every_gate_as_it_was(old: str) -> None:
    names = [*GATES, "off", "broken"]
    before = {name: (gate(old, name), versions(old, name)) for name in names}
    migrate(old, BEFORE)
    migrate(old, AFTER)
    assert {name: (gate(old, name), versions(old, name)) for name in names} == before
