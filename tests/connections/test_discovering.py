"""Is nobody asked for a yes before the skill has said how it would sign in, and is it believed only so far?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.connections import discovering
from apps.connections.enums import ConnectionStatus
from apps.connections.services import finding_out
from kernel.tenancy import tenant_scope
from tests.connections.links import link
from tests.connections.test_setup import attend_owed
from tests.factories.connections import reread

SAYS = 'say({"auth_strategy": "device_code", "provider": "mail", "initial_permissions": ["Admin.All"]})'


def kinds(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return [card.kind for card in Card.objects.all()]


def test_card_comes_after_the_discovery_and_binds_what_was_found(tenant: Any) -> None:
    row = link(tenant, discover=SAYS)
    assert (reread(row).discovering, kinds(tenant)) == (True, [])
    assert [discovering.discover(tenant.pk, row.pk) for _ in range(2)] == [True, False]
    attend_owed(tenant)
    found = reread(row)
    assert (found.discovering, found.auth_strategy, found.provider) == (False, "device_code", "mail")
    with tenant_scope(tenant):
        card = Card.objects.get()
    assert (card.kind, card.payload["after"], "device_code" in card.payload["operation"]) == (
        "connection",
        ["Mail.Read"],  # what it would like is not what is asked for
        True,
    )


def test_script_is_asked_on_one_line_and_then_no_more(tenant: Any) -> None:
    """It says back what it heard, where it may say anything: the provider."""
    says = "say({'auth_strategy': 'device_code', 'provider': json.dumps([hear(), hear(), os.listdir()])})"
    row = link(tenant, discover=says)
    discovering.discover(tenant.pk, row.pk)
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
    discovering.discover(tenant.pk, row.pk)
    attend_owed(tenant)
    assert (reread(row).status, reread(row).failure["failure_type"]) == (ConnectionStatus.FAILED, kind)
    assert kinds(tenant) == ["connection_failure"]


def test_discovery_of_a_worker_that_lost_its_lease_counts_for_nothing(tenant: Any) -> None:
    row = link(tenant, discover=SAYS)
    with tenant_scope(tenant):
        lost = finding_out.claim(row.pk)
        assert lost is not None and finding_out.claim(row.pk) is None
        reread(row).__class__.objects.update(leased_until=None)
        assert finding_out.claim(row.pk) is not None
        finding_out.failed(row.pk, lost, None)
    assert reread(row).status == ConnectionStatus.PROPOSED
