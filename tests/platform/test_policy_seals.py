"""Policy that a superuser of the database writes without the signing key is not believed."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from apps.access.models import AccessLevel
from apps.approvals.enums import Deciders, Risk
from apps.approvals.models import ApprovalPolicy
from apps.approvals.queries import always_needs_passkey, require_certified_policy
from apps.audit.models import AuditEntry
from apps.gates.queries import active_gates
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates, retire, roll_back, save_gate
from apps.sessions import policy
from apps.tenants import policy_pins, policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import PolicySeal, Tenant
from apps.tenants.services import create_tenant
from apps.work.queries import active_goal_spec
from apps.work.services import adopt_goal
from kernel import trust
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from silas_platform.certification import certify_all
from tests.factories.audit import tampering
from tests.factories.identity import GOAL
from tests.factories.tenants import make_deployment, make_tenant

# Lets no message of these tests pass.
STRICT = "never-said"
CONTEXT = {"message": "hello", "recent": [], "verified_gates": {}}


def spec(name: str, pattern: str = ".") -> GateSpec:
    return GateSpec(name=name, on="every_user_message", type="regex", config={"pattern": pattern})


def blocks(tenant: Any, deployment: Any) -> bool:
    """Whether a harmless message is stopped, with the gates as a turn loads them."""
    with tenant_scope(tenant):
        gates = active_gates(deployment.pk).value
    return check_gates(gates, "every_user_message", CONTEXT).blocked


@pytest.fixture
def gate(tenant: Any, deployment: Any) -> Any:
    with tenant_scope(tenant):
        return save_gate(spec("guard"), deployment_id=deployment.pk)


def test_certified_gate_is_believed_and_put_in_force_by_no_process_without_the_signing_key(
    tenant: Any, deployment: Any, gate: Any, settings: Any
) -> None:
    """A worker knows the pinned key only."""
    assert not blocks(tenant, deployment)
    settings.SILAS_SIGNING_KEY = ""
    assert not blocks(tenant, deployment)
    with pytest.raises(SilasError, match="SILAS_SIGNING_KEY"), tenant_scope(tenant):
        save_gate(spec("second"), deployment_id=deployment.pk)


def test_rolled_back_gate_is_certified(tenant: Any, deployment: Any, gate: Any) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", STRICT), deployment_id=deployment.pk)
        roll_back(gate.pk, 1)
    assert not blocks(tenant, deployment)


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE gates_gateversion SET content = jsonb_set(content, '{config,pattern}', '\"h\"') WHERE gate_id = %s",
        'UPDATE gates_gateversion SET "order" = 1 WHERE gate_id = %s',
        "UPDATE gates_gate SET name = 'other' WHERE id = %s",
        "UPDATE gates_gate SET status = 'retired', active = NULL WHERE id = %s",
        "UPDATE gates_gate SET deployment_id = NULL WHERE id = %s",
        "DELETE FROM gates_gateversion WHERE gate_id = %s",
        "DELETE FROM gates_gate WHERE id = %s",
    ],
)
def test_gate_in_force_that_was_changed_or_taken_away_by_sql_blocks(
    tenant: Any, deployment: Any, gate: Any, tamper: Any, forgery: str
) -> None:
    tamper(forgery, [gate.pk])
    assert blocks(tenant, deployment)


def test_gate_that_was_only_written_blocks(tenant: Any, deployment: Any, tamper: Any) -> None:
    gate_id = uuid4()
    tamper(
        "INSERT INTO gates_gate (id, tenant_id, name, status, active, newest) VALUES (%s, %s, 'x', 'active', 1, 1)",
        [gate_id, tenant.pk],
    )
    tamper(
        'INSERT INTO gates_gateversion (id, tenant_id, gate_id, number, "order", content, written_by, note)'
        " VALUES (%s, %s, %s, 1, 1, %s, 'system', '')",
        [uuid4(), tenant.pk, gate_id, json.dumps({"on": "every_user_message", "type": "regex", "config": {}})],
    )
    assert blocks(tenant, deployment)


def test_earlier_version_put_back_in_force_by_sql_blocks(tenant: Any, deployment: Any, gate: Any, tamper: Any) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", STRICT), deployment_id=deployment.pk)
    tamper("UPDATE gates_gate SET active = 1 WHERE id = %s", [gate.pk])
    assert blocks(tenant, deployment)


@pytest.mark.parametrize("forgery", ["DELETE FROM tenants_policyseal WHERE tenant_id = %s", "other", "emptied"])
def test_list_that_is_gone_copied_or_emptied_blocks(
    tenant: Any, other_tenant: Any, deployment: Any, gate: Any, superuser_dsn: str, forgery: str
) -> None:
    with tampering(superuser_dsn) as cursor:
        cursor.execute("DELETE FROM gates_gate WHERE id = %s", [gate.pk])
        if forgery == "other":
            cursor.execute(
                "UPDATE tenants_policyseal AS mine SET items = o.items, signature = o.signature, version = o.version"
                " FROM tenants_policyseal AS o WHERE mine.tenant_id = %s AND o.tenant_id = %s AND o.kind = mine.kind",
                [tenant.pk, other_tenant.pk],
            )
        elif forgery == "emptied":
            cursor.execute("UPDATE tenants_policyseal SET items = '{}' WHERE tenant_id = %s", [tenant.pk])
        else:
            cursor.execute(forgery, [tenant.pk])
    assert blocks(tenant, deployment)


def test_list_put_back_to_what_it_was_is_found_by_a_process_that_saw_the_later_one(
    tenant: Any, deployment: Any, gate: Any, tamper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_pins, "OVERTAKEN_SECONDS", 0.0)
    with tenant_scope(tenant):
        seal = PolicySeal.objects.get(kind=PolicyKind.GATES)
        retire(gate.pk)
    with tenant_scope(tenant):
        save_gate(spec("guard", STRICT), deployment_id=deployment.pk)
    assert blocks(tenant, deployment)
    tamper("UPDATE gates_gate SET active = 1 WHERE id = %s", [gate.pk])
    tamper(
        "UPDATE tenants_policyseal SET items = %s, signature = %s, version = %s WHERE id = %s",
        [seal.items, seal.signature, seal.version, seal.pk],
    )
    assert blocks(tenant, deployment)


def test_change_beside_a_forged_gate_does_not_certify_it(tenant: Any, deployment: Any, gate: Any, tamper: Any) -> None:
    tamper("UPDATE gates_gate SET name = 'other' WHERE id = %s", [gate.pk])
    with tenant_scope(tenant):
        save_gate(spec("second"), deployment_id=deployment.pk)
    assert blocks(tenant, deployment)


def test_what_is_not_believed_is_audited_once(tenant: Any, deployment: Any, gate: Any, tamper: Any) -> None:
    tamper("UPDATE gates_gate SET name = 'other' WHERE id = %s", [gate.pk])
    blocks(tenant, deployment)
    blocks(tenant, deployment)
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="policy_not_believed")
    assert json.loads(entry.data)["kind"] == "gates"
    assert json.loads(entry.data)["problem"] == "forged"


# --- levels


@pytest.fixture
def level(tenant: Any, deployment: Any) -> AccessLevel:
    with tenant_scope(tenant):
        row: AccessLevel = AccessLevel.objects.create(
            deployment=deployment, name="customer", order=1, tools=["look"], requires=["known"]
        )
    return row


def levels(tenant: Any, deployment: Any) -> dict[str, list[str]]:
    with tenant_scope(tenant):
        return {name: level.tools for name, level in policy.load(deployment).levels.items()}


def test_level_that_was_saved_is_believed(tenant: Any, deployment: Any, level: AccessLevel) -> None:
    assert levels(tenant, deployment)["customer"] == ["look"]


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE silas_sessions_accesslevel SET tools = '[\"act\"]' WHERE id = %s",
        "UPDATE silas_sessions_accesslevel SET requires = '[\"easy\"]' WHERE id = %s",
        'UPDATE silas_sessions_accesslevel SET "order" = 0 WHERE id = %s',
        "UPDATE silas_sessions_accesslevel SET name = 'public', requires = '[]' WHERE id = %s",
        "UPDATE silas_sessions_accesslevel SET expires_after = 9 WHERE id = %s",
    ],
)
def test_level_that_was_changed_by_sql_opens_nothing(
    tenant: Any, deployment: Any, level: AccessLevel, tamper: Any, forgery: str
) -> None:
    tamper(forgery, [level.pk])
    assert levels(tenant, deployment) == {"public": ["knowledge_search"]}


def test_level_moved_to_another_deployment_opens_nothing(
    tenant: Any, deployment: Any, level: AccessLevel, tamper: Any
) -> None:
    other = make_deployment(tenant)
    tamper("UPDATE silas_sessions_accesslevel SET deployment_id = %s WHERE id = %s", [other.pk, level.pk])
    assert levels(tenant, other) == {"public": ["knowledge_search"]}


# --- goals


@pytest.fixture
def governed(tenant: Any, deployment: Any) -> Any:
    bare = GOAL[: GOAL.index("skills:")] + GOAL[GOAL.index("access_levels:") :] if "skills:" in GOAL else GOAL
    with tenant_scope(tenant):
        goal = adopt_goal(bare, deployment_id=deployment.pk, requested_by="user:test")
        deployment.active_goal_id = goal.pk
        deployment.save(update_fields=["active_goal_id"])
    return deployment


def goal_blocks(tenant: Any, deployment: Any) -> bool:
    with tenant_scope(tenant):
        place = type(deployment).objects.get(pk=deployment.pk)
        found = active_goal_spec(place).value
    return found is not None and found.title == "Not certified"


def test_goal_that_was_put_in_force_is_believed(tenant: Any, governed: Any) -> None:
    assert not goal_blocks(tenant, governed)


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE work_workitem SET plan = replace(plan, '\"on_stuck\"', ' \"on_stuck\"') WHERE deployment_id = %s",
        "UPDATE tenants_deployment SET active_goal_id = NULL WHERE id = %s",
        "UPDATE tenants_deployment SET active_goal_id = gen_random_uuid() WHERE id = %s",
    ],
)
def test_goal_that_was_changed_or_taken_away_by_sql_blocks(
    tenant: Any, governed: Any, tamper: Any, forgery: str
) -> None:
    tamper(forgery, [governed.pk])
    assert goal_blocks(tenant, governed)


# --- who may approve


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE approvals_approvalpolicy SET people = 1 WHERE tenant_id = %s",
        "DELETE FROM approvals_approvalpolicy WHERE tenant_id = %s",
    ],
)
def test_weaker_rules_for_approvals_by_sql_let_nobody_approve(tenant: Any, tamper: Any, forgery: str) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2, who=Deciders.OWNERS)
    tamper(forgery, [tenant.pk])
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        require_certified_policy()
    assert refused.value.code == "policy_not_certified"
    with tenant_scope(tenant):
        assert always_needs_passkey(Risk.LOW)


# --- existing installations


def test_tenant_from_before_the_lists_blocks_until_it_is_certified(
    tenant: Any, deployment: Any, gate: Any, tamper: Any
) -> None:
    tamper("DELETE FROM tenants_policyseal WHERE tenant_id = %s", [tenant.pk])
    assert blocks(tenant, deployment)
    done = {one.tenant: one.counts for one in certify_all(actor="system", slug=tenant.slug)}
    assert done[tenant.slug]["gates"] == 1
    assert not blocks(tenant, deployment)


def test_tenant_is_created_with_its_lists_and_by_no_process_without_the_signing_key(
    database: None, settings: Any
) -> None:
    with tenant_scope(make_tenant()):
        assert {seal.kind for seal in PolicySeal.objects.all()} == set(PolicyKind.values)
    settings.SILAS_SIGNING_KEY = ""
    with pytest.raises(SilasError, match="SILAS_SIGNING_KEY"):
        create_tenant("never-made", name="Never", owner_email="never@example.test")
    assert not Tenant.objects.filter(slug="never-made").exists()


def test_lists_are_resealed_for_another_signing_key(tenant: Any, deployment: Any, gate: Any, settings: Any) -> None:
    with tenant_scope(tenant):
        policy_seals.reseal(old=settings.SILAS_SIGNING_KEY, new="another")
    settings.SILAS_SIGNING_KEY, settings.SILAS_ROOT_KEYS = "another", (trust.root_of("another"),)
    assert not blocks(tenant, deployment)
