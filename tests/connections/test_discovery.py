"""A card is opened only after the skill has said how it would sign in, and what it says is trusted only so far."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.connections.enums import ConnectionStatus
from apps.connections.schemas import Discovery
from apps.connections.services import discovery
from kernel.tenancy import tenant_scope
from tests.connections.links import link
from tests.connections.test_setup import attend_owed
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.connections import discover, reread

SAYS = 'say({"auth_strategy": "device_code", "provider": "mail", "initial_permissions": ["Admin.All"]})'


def kinds(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return [card.kind for card in Card.objects.all()]


def test_card_comes_after_the_discovery_and_binds_what_was_found(tenant: Any) -> None:
    row = link(tenant, discover=SAYS)
    assert reread(row).discovering is True
    assert kinds(tenant) == []
    discover(tenant)
    attend_owed(tenant)
    found = reread(row)
    assert found.discovering is False
    assert found.auth_strategy == "device_code"
    assert found.provider == "mail"
    with tenant_scope(tenant):
        card = Card.objects.get()
    assert card.kind == "connection"
    assert card.payload["after"] == ["Mail.Read"]
    assert "device_code" in card.payload["operation"]


def test_script_is_asked_on_one_line_and_then_no_more(tenant: Any) -> None:
    """It says back what it heard, where it may say anything: the provider."""
    says = "say({'auth_strategy': 'device_code', 'provider': json.dumps([hear(), hear(), os.listdir()])})"
    row = link(tenant, discover=says)
    discover(tenant)
    assert json.loads(reread(row).provider) == [{"identity_hint": {}}, None, []]


@pytest.mark.parametrize(
    ("says", "kind"),
    [
        ('say({"failure": {"failure_type": "enterprise_policy_block"}})', "enterprise_policy_block"),
        ('say({"auth_strategy": "magic"})', "unknown"),
        ('print("garbage")', "unknown"),
        ("sys.exit(1)", "unknown"),
    ],
)
def test_discovery_that_fails_is_told_with_its_ways_out(tenant: Any, says: str, kind: str) -> None:
    row = link(tenant, discover=says)
    discover(tenant)
    attend_owed(tenant)
    assert reread(row).status == ConnectionStatus.FAILED
    assert reread(row).failure["failure_type"] == kind
    assert kinds(tenant) == ["connection_failure"]


def test_discovery_of_a_worker_that_lost_its_lease_counts_for_nothing(tenant: Any) -> None:
    row = link(tenant, discover=SAYS)
    with tenant_scope(tenant):
        lost = lease_any(Queue.WORK, consumer="lost")
        assert lost is not None
        assert lease_any(Queue.WORK, consumer="other") is None
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        discovery.record_result(row.pk, lost.ref, Discovery(auth_strategy="device_code"))
    assert reread(row).discovering
    discover(tenant)
    assert reread(row).provider == "mail"


def test_discovery_that_kills_its_workers_is_told(tenant: Any) -> None:
    row = link(tenant, discover=SAYS)
    for _ in range(MAX_ATTEMPTS):
        with tenant_scope(tenant):
            lease_any(Queue.WORK, consumer="doomed")
        let_leases_run_out(tenant)
    with tenant_scope(tenant):
        bus.expire_leases()
    attend_owed(tenant)
    assert reread(row).status == ConnectionStatus.FAILED
    assert kinds(tenant) == ["connection_failure"]
