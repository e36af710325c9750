"""A gate's versions: nothing is rewritten, nothing is lost, and every change is on record."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, IntegrityError, connection

from apps.audit.models import AuditEntry
from apps.gates.models import Gate, GateVersion
from apps.gates.queries import active_gates, versions_of
from apps.gates.schemas import GateSpec
from apps.gates.services import activate, retire, roll_back, save_gate, write_version
from apps.work import services as work
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.identity import GOAL, make_identity_desk
from tests.factories.tenants import make_deployment
from tests.gates.test_rows import in_force_unchecked, spec
from tests.rivals import race


def patterns(deployment: Any) -> list[str]:
    return [gate.config["pattern"] for gate in active_gates(deployment.pk).value]


def with_pattern(pattern: str, name: str = "g") -> GateSpec:
    return spec(name, config={"pattern": pattern})


def events(gate: Gate) -> list[tuple[str, dict[str, Any]]]:
    found = AuditEntry.objects.filter(subject=f"gate:{gate.pk}").order_by("seq")
    return [(entry.event, json.loads(entry.data)) for entry in found]


def test_first_version_is_a_draft(tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = write_version(with_pattern("a")).gate
        assert gate.status == "draft"
        assert gate.active is None
        assert gate.newest == 1
        assert gate.draft == 1


def test_draft_changes_nothing_until_it_is_activated(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("old"))
        write_version(with_pattern("new"))
        before = patterns(deployment)
        activate(gate.pk, 2)
        assert before == ["old"]
        assert patterns(deployment) == ["new"]


def test_version_says_who_wrote_it_and_why(tenant: Any) -> None:
    with tenant_scope(tenant):
        version = write_version(with_pattern("a"), actor="user:7", note="  Complaints about cards  ")
        assert version.written_by == "user:7"
        assert version.note == "Complaints about cards"


def test_same_content_again_is_no_new_version(tenant: Any) -> None:
    with tenant_scope(tenant):
        numbers = [write_version(with_pattern("a")).number for _ in range(2)]
        assert numbers == [1, 1]


def test_another_order_is_a_new_version(tenant: Any) -> None:
    with tenant_scope(tenant):
        write_version(with_pattern("a"), order=10)
        assert write_version(with_pattern("a"), order=20).number == 2


def test_roll_back_brings_old_content_as_a_new_version(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("one"))
        save_gate(with_pattern("two"))
        new = roll_back(gate.pk, 1, actor="user:7", note="Too strict")
        assert new.number == 3
        assert new.restores == 1
        assert patterns(deployment) == ["one"]


def test_roll_back_loses_no_version(tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("one"))
        save_gate(with_pattern("two"))
        roll_back(gate.pk, 1)
        assert [version.content["config"]["pattern"] for version in versions_of(gate)] == ["one", "two", "one"]


def test_roll_back_to_what_is_in_force_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("one"))
        with pytest.raises(SilasError, match="already active") as refused:
            roll_back(gate.pk, 1)
        assert refused.value.status == 409


def test_retired_gate_is_not_in_force_and_keeps_its_versions(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = retire(save_gate(with_pattern("one")).pk)
        assert gate.status == "retired"
        assert patterns(deployment) == []
        assert len(versions_of(gate)) == 1


def test_retired_gate_comes_back(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        gate = retire(save_gate(with_pattern("one")).pk)
        activate(gate.pk, 1)
        assert patterns(deployment) == ["one"]


@pytest.mark.parametrize("change", [activate, roll_back])
@pytest.mark.parametrize("number", [0, 2, -1])
def test_version_that_does_not_exist_is_not_found(tenant: Any, change: Any, number: int) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("one"))
        with pytest.raises(SilasError) as refused:
            change(gate.pk, number)
        assert refused.value.status == 404


@pytest.mark.parametrize("change", [retire, partial(activate, number=1), partial(roll_back, number=1)])
def test_gate_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, change: Any) -> None:
    with tenant_scope(other_tenant):
        foreign = save_gate(with_pattern("one")).pk
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        change(foreign)
    assert refused.value.status == 404


def test_unknown_gate_is_not_found(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        retire(uuid4())
    assert refused.value.status == 404


def test_content_that_is_no_gate_cannot_be_activated(tenant: Any) -> None:
    with tenant_scope(tenant):
        in_force_unchecked("a", {"on": "whenever"})
        gate = retire(Gate.objects.get().pk)
        with pytest.raises(SilasError) as refused:
            activate(gate.pk, 1)
        assert refused.value.code == "gate_invalid"


def test_writer_who_did_not_see_the_newest_version_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        write_version(with_pattern("a"), seen=0)
        write_version(with_pattern("b"), seen=1)
        with pytest.raises(SilasError) as refused:
            write_version(with_pattern("c"), seen=1)
        assert refused.value.code == "gate_changed"
        assert refused.value.extra["newest"] == 2


def test_new_gate_of_a_name_that_exists_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        write_version(with_pattern("a"))
        with pytest.raises(SilasError) as refused:
            write_version(with_pattern("b"), seen=0)
        assert refused.value.code == "gate_changed"


def test_two_writers_at_once_get_one_number_each(tenant: Any) -> None:
    with tenant_scope(tenant):
        write_version(with_pattern("first"))

    def write(pattern: str) -> int:
        with tenant_scope(tenant):
            return write_version(with_pattern(pattern)).number

    assert sorted(race(partial(write, "b"), partial(write, "c"))) == [2, 3]


def test_every_change_is_on_record_with_ids_and_numbers_only(tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("secret one"))
        save_gate(with_pattern("secret two"))
        roll_back(gate.pk, 1)
        retire(gate.pk)
    with tenant_scope(tenant):
        assert events(gate) == [
            ("gate_saved", {"version": 1}),
            ("gate_activated", {"version": 1, "before": 0}),
            ("gate_saved", {"version": 2}),
            ("gate_activated", {"version": 2, "before": 1}),
            ("gate_saved", {"version": 3}),
            ("gate_rolled_back", {"version": 3, "before": 2, "restores": 1}),
            ("gate_retired", {"version": 3}),
        ]


def test_audit_names_who_changed_it(tenant: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(with_pattern("a"), actor="user:7")
    with tenant_scope(tenant):
        assert set(AuditEntry.objects.filter(subject=f"gate:{gate.pk}").values_list("actor", flat=True)) == {"user:7"}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gates_gateversion SET content = '{}'",
        "UPDATE gates_gateversion SET written_by = 'user:1'",
        "DELETE FROM gates_gateversion",
        "DELETE FROM gates_gate",
        "UPDATE gates_gate SET name = 'other'",
        "UPDATE gates_gate SET newest = 0, active = NULL, status = 'retired'",
    ],
)
def test_history_cannot_be_rewritten_in_the_database(tenant: Any, statement: str) -> None:
    with tenant_scope(tenant):
        save_gate(with_pattern("a"))
    with pytest.raises(DatabaseError, match=r"cannot be rewritten|keeps its name"), tenant_scope(tenant):
        connection.cursor().execute(statement)


@pytest.mark.parametrize(("status", "active"), [("active", None), ("draft", 1), ("retired", 1), ("active", 2)])
def test_gate_in_force_has_a_version(tenant: Any, status: str, active: int | None) -> None:
    with pytest.raises(IntegrityError, match=r"gate_in_force|gate_version_exists"), tenant_scope(tenant):
        Gate.objects.create(name="a", status=status, active=active, newest=1)


def test_gate_name_twice_for_all_deployments_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        Gate.objects.create(name="a")
    with pytest.raises(IntegrityError, match="gate_name_once"), tenant_scope(tenant):
        Gate.objects.create(name="a")


def test_number_twice_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant):
        version = write_version(with_pattern("a"))
    with pytest.raises(IntegrityError, match="gate_version_once"), tenant_scope(tenant):
        GateVersion.objects.create(gate_id=version.gate_id, number=1, content={}, written_by="system")


def test_gate_that_no_turn_could_ask_is_not_activated(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        for number in range(20):
            save_gate(with_pattern(".", f"in{number}"))
        for number in range(12):
            save_gate(spec(f"own{number}"), deployment_id=deployment.pk)
        draft = write_version(spec("last", on="every_agent_response"), deployment_id=deployment.pk)
        with pytest.raises(SilasError) as refused:
            activate(draft.gate_id, 1)
        assert refused.value.code == "too_many_gates"


def test_gates_that_are_not_asked_together_do_not_count_together(tenant: Any, deployment: Any) -> None:
    other = make_deployment(tenant)
    with tenant_scope(tenant):
        for number in range(20):
            save_gate(spec(f"a{number}"), deployment_id=deployment.pk)
            save_gate(spec(f"b{number}"), deployment_id=other.pk)
        save_gate(spec("call", on="on_tool_call"), deployment_id=other.pk)
        assert len(active_gates(other.pk).value) == 21


def test_gates_of_the_goal_count_when_one_more_is_activated(tenant: Any, tmp_path: Path) -> None:
    desk = make_identity_desk(tenant, tmp_path)
    with tenant_scope(tenant):
        written = GOAL.replace("access_levels:", f"gates:\n{_many(20, 'every_agent_response')}access_levels:")
        desk.active_goal_id = work.adopt_goal(written, deployment_id=desk.pk, requested_by="user:test").pk
        desk.save(update_fields=["active_goal_id"])
        for number in range(11):
            save_gate(spec(f"row{number}"))
        with pytest.raises(SilasError, match=rf"would need 33 at {desk.title}, including those of its goal") as refused:
            save_gate(spec("last"))
        assert refused.value.code == "too_many_gates"


def test_gates_that_watch_a_look_up_count_as_its_turn_asks_them(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        for number in range(31):
            save_gate(spec(f"said{number}"))
        save_gate(spec("acting", on="on_tool_call", config={"pattern": ".", "tools": ["pay"]}))
        save_gate(spec("one", on="on_tool_call", config={"pattern": ".", "tools": ["knowledge_search"]}))
        with pytest.raises(SilasError) as refused:
            save_gate(spec("all", on="on_tool_call"))
        assert refused.value.code == "too_many_gates"


def _many(count: int, on: str) -> str:
    return "".join(f"  - {{name: g{number}, on: {on}, type: approval_always}}\n" for number in range(count))
