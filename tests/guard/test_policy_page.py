"""What happens at a limit, set by owners in the console."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.guard.models import SpendingPolicy
from apps.guard.services import change_spending_policy
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.tenants import make_member

TYPED = {"on_limit": "alert_only", "visitor_daily_usd": "0.50", "default_input": "1", "default_output": "2.5"}


def address() -> str:
    return reverse("console-spending-policy")


def test_owner_sets_the_policy_and_it_is_recorded(tenant: Any, other_tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    assert '<option value="pause_all" selected>' in desk.get(address()).content.decode()
    assert desk.post(address(), TYPED).status_code == 302
    with tenant_scope(tenant):
        row = SpendingPolicy.objects.get()
        assert row.on_limit == "alert_only"
        assert row.visitor_daily_usd == Decimal("0.5")
        assert row.default_output == Decimal("2.5")
        assert AuditEntry.objects.get(event="admin_changed").actor == owner.actor
    assert changes(tenant) == [
        {
            "model": "guard.spendingpolicy",
            "change": "changed",
            "fields": ["on_limit", "visitor_daily_usd", "default_input", "default_output"],
            "before": {"on_limit": "pause_all", **dict.fromkeys(list(TYPED)[1:])},
            "after": {**TYPED, "visitor_daily_usd": "0.5"},
        }
    ]
    shown = desk.get(address()).content.decode()
    assert '<option value="alert_only" selected>' in shown
    assert 'value="0.5"' in shown
    assert desk.post(address(), TYPED).status_code == 302
    assert len(changes(tenant)) == 1
    with tenant_scope(other_tenant):
        assert not SpendingPolicy.objects.exists()


def test_empty_amounts_remove_them(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    desk.post(address(), TYPED)
    assert desk.post(address(), {"on_limit": "pause_all"}).status_code == 302
    with tenant_scope(tenant):
        row = SpendingPolicy.objects.get()
    assert row.visitor_daily_usd is None
    assert row.default_input is None
    assert row.default_output is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"on_limit": "never"},
        {"on_limit": ""},
        {"visitor_daily_usd": "-1"},
        {"visitor_daily_usd": "NaN"},
        {"visitor_daily_usd": "1e12"},
        {"visitor_daily_usd": "0.0000000001"},
        {"default_input": "", "default_output": "1"},
        {"default_input": "1", "default_output": ""},
        {"default_output": "free"},
    ],
)
def test_wrong_value_is_refused(tenant: Any, owner: Any, wrong: dict[str, str]) -> None:
    refused = browser(owner).post(address(), {**TYPED, **wrong})
    assert refused.status_code == 422
    assert b"Nothing was saved" in refused.content
    assert changes(tenant) == []


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_only_owners_open_and_change_it(tenant: Any, role: str) -> None:
    member = make_member(tenant, role)
    assert browser(member).get(address()).status_code == 403
    assert browser(member).post(address(), TYPED).status_code == 403
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        change_spending_policy({"on_limit": "alert_only"}, actor=member.actor, user=member)
    assert refused.value.code == "forbidden_role"
    assert changes(tenant) == []


def test_console_and_administration_lead_to_each_other(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    desk.post(address(), TYPED)
    assert reverse("admin:guard_spendingpolicy_changelist") in desk.get(address()).content.decode()
    assert address() in desk.get(reverse("console-spending")).content.decode()
    with tenant_scope(tenant):
        row = SpendingPolicy.objects.get()
    assert address() in desk.get(reverse("admin:guard_spendingpolicy_change", args=[row.pk])).content.decode()
