"""Gates as rows: order, tenants, constraints, and what a broken row turns into."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError

from apps.gates.models import Gate
from apps.gates.queries import active_gates
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates, save_gate
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_deployment


def spec(name: str, **fields) -> GateSpec:
    return GateSpec(**{"name": name, "on": "every_user_message", "type": "regex", "config": {"pattern": "."}, **fields})


def test_gate_comes_back_as_it_was_saved(tenant, deployment):
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
        assert active_gates(deployment.pk) == (refund,)


def test_gate_saved_again_is_changed(tenant, deployment):
    with tenant_scope(tenant):
        save_gate(spec("a"), deployment_id=deployment.pk)
        save_gate(spec("a", on_block="polite_redirect"), deployment_id=deployment.pk)
        assert [gate.on_block for gate in active_gates(deployment.pk)] == ["polite_redirect"]


def test_gates_for_all_deployments_come_first(tenant, deployment):
    with tenant_scope(tenant):
        save_gate(spec("mine"), deployment_id=deployment.pk, order=1)
        save_gate(spec("system"), order=99)
        assert [gate.name for gate in active_gates(deployment.pk)] == ["system", "mine"]


def test_gates_of_another_deployment_are_not_active(tenant, deployment):
    other = make_deployment(tenant)
    with tenant_scope(tenant):
        save_gate(spec("a"), deployment_id=other.pk)
        assert active_gates(deployment.pk) == ()


def test_gates_switched_off_are_not_active(tenant, deployment):
    with tenant_scope(tenant):
        save_gate(spec("a"))
        Gate.objects.update(enabled=False)
        assert active_gates(deployment.pk) == ()


def test_gates_of_another_tenant_are_not_seen(tenant, other_tenant, deployment):
    with tenant_scope(other_tenant):
        save_gate(spec("foreign"))
    with tenant_scope(tenant):
        assert active_gates(deployment.pk) == ()


def test_gate_row_that_is_broken_blocks(tenant, deployment):
    with tenant_scope(tenant):
        save_gate(spec("a"))
        Gate.objects.update(config={"pattern": "("})
        gates = active_gates(deployment.pk)
    assert check_gates(gates, "every_user_message", {"message": "x"}).blocked.code == "provider_missing"


def test_gate_row_that_is_broken_is_refused_by_the_form(tenant):
    with tenant_scope(tenant), pytest.raises(ValidationError, match="regular expression"):
        Gate(name="a", on="every_user_message", config={"pattern": "("}).full_clean(exclude=["tenant"])


def test_gate_name_twice_for_all_deployments_is_refused(tenant):
    with tenant_scope(tenant):
        Gate.objects.create(name="a", on="every_user_message")
    with pytest.raises(IntegrityError, match="gate_name_once"), tenant_scope(tenant):
        Gate.objects.create(name="a", on="every_user_message")


def test_gate_step_without_its_trigger_is_refused(tenant):
    with pytest.raises(IntegrityError, match="gate_step"), tenant_scope(tenant):
        Gate.objects.create(name="a", on="every_user_message", after_step=1)
