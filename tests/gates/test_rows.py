"""Gates in force: order, tenants, and what a content that is no gate turns into."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.gates.models import Gate, GateVersion
from apps.gates.queries import active_gates
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates, save_gate, write_version
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_deployment


def spec(name: str, **fields: Any) -> GateSpec:
    return GateSpec(**{"name": name, "on": "every_user_message", "type": "regex", "config": {"pattern": "."}, **fields})


def in_force_unchecked(name: str, content: dict[str, Any]) -> None:
    """As a restored backup or an older release may have left it."""
    gate = Gate.objects.create(name=name, status="active", active=1, newest=1)
    GateVersion.objects.create(gate=gate, number=1, content=content, written_by="system")


def test_gate_comes_back_as_it_was_saved(tenant: Any, deployment: Any) -> None:
    refund = spec(
        "cap",
        on="on_tool_call",
        type="numeric_range",
        config={"tools": ["refund"]},
        extract="amount",
        auto_approve={"min": 0, "max": 50},
        block={"outside": [0, 250]},
        check="x",
    )
    with tenant_scope(tenant):
        save_gate(refund, deployment_id=deployment.pk)
    with tenant_scope(tenant):
        assert active_gates(deployment.pk).value == (refund,)


def test_gate_saved_again_is_changed(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        save_gate(spec("a"), deployment_id=deployment.pk)
        save_gate(spec("a", on_block="polite_redirect"), deployment_id=deployment.pk)
        assert [gate.on_block for gate in active_gates(deployment.pk).value] == ["polite_redirect"]


def test_gates_for_all_deployments_come_first(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        save_gate(spec("mine"), deployment_id=deployment.pk, order=1)
        save_gate(spec("system"), order=99)
        assert [gate.name for gate in active_gates(deployment.pk).value] == ["system", "mine"]


def test_gates_come_in_their_order_then_by_name(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        for name, order in (("b", 20), ("c", 10), ("a", 20)):
            save_gate(spec(name), order=order)
        assert [gate.name for gate in active_gates(deployment.pk).value] == ["c", "a", "b"]


def test_gates_of_another_deployment_are_not_active(tenant: Any, deployment: Any) -> None:
    other = make_deployment(tenant)
    with tenant_scope(tenant):
        save_gate(spec("a"), deployment_id=other.pk)
        assert active_gates(deployment.pk).value == ()


def test_gate_that_is_only_a_draft_is_not_active(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        write_version(spec("a"))
        assert active_gates(deployment.pk).value == ()


def test_gates_of_another_tenant_are_not_seen(tenant: Any, other_tenant: Any, deployment: Any) -> None:
    with tenant_scope(other_tenant):
        save_gate(spec("foreign"))
    with tenant_scope(tenant):
        assert active_gates(deployment.pk).value == ()


def test_gates_are_read_with_one_statement(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        for number in range(5):
            save_gate(spec(f"a{number}"))
    with tenant_scope(tenant), CaptureQueriesContext(connection) as asked:
        gates = active_gates(deployment.pk).value
    assert len(gates) == 5
    assert len([one for one in asked.captured_queries if "gates_gate" in one["sql"]]) == 1


@pytest.mark.parametrize(
    "content",
    [
        {"on": "every_user_message", "type": "regex", "config": {"pattern": "("}},
        {"on": "every_user_message", "after_step": "x"},
        {"on": "every_user_message", "provider": "somebody"},
        {"on": "every_user_message", "strange": 1},
        {"on": "whenever"},
        {},
        {"name": "another"},
    ],
)
def test_content_that_is_no_gate_blocks(tenant: Any, deployment: Any, content: dict[str, Any]) -> None:
    with tenant_scope(tenant):
        in_force_unchecked("a", content)
        gates = active_gates(deployment.pk).value
    assert check_gates(gates, "every_user_message", {"message": "x"}).blocked.code == "misconfigured"


def test_content_without_a_place_blocks_everywhere(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        in_force_unchecked("a", {"on": "whenever"})
        gates = active_gates(deployment.pk).value
    contexts = {"every_agent_response": {"response": "x"}, "on_tool_call": {"tool_name": "t", "tool_args": {}}}
    assert all(check_gates(gates, on, context).blocked for on, context in contexts.items())
