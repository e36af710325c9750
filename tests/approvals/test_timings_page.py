"""How long cards wait, set by owners in the console for the company or one chatbot."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.approvals import queries
from apps.approvals.enums import Pace
from apps.approvals.models import CardTiming
from apps.approvals.timings import card_timings, change_card_timings
from apps.audit.models import AuditEntry
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.audit import changes
from tests.factories.console import browser
from tests.factories.tenants import make_deployment, make_member
from tests.rivals import race

EMPTY = {f"{pace}_{part}": value for pace in Pace.values for part, value in ((0, ""), (1, "60"))}


def address(chatbot: Any = None) -> str:
    return reverse("console-card-timings") + (f"?chatbot={chatbot.pk}" if chatbot else "")


def test_owner_sets_changes_and_removes_the_time_of_the_company(tenant: Any, owner: Any, settings: Any) -> None:
    desk = browser(owner)
    assert desk.post(address(), {**EMPTY, "plan_0": "36", "plan_1": "3600"}).status_code == 302
    with tenant_scope(tenant):
        assert queries.card_lifetime(Pace.PLAN, None) == 129_600
        assert card_timings(None) == {Pace.PLAN: 129_600, Pace.GATE: None, Pace.CALM: None}
        assert AuditEntry.objects.get(event="admin_changed").actor == owner.actor
    assert 'name="plan_0" value="36"' in desk.get(address()).content.decode()
    desk.post(address(), {**EMPTY, "plan_0": "2", "plan_1": "86400"})
    desk.post(address(), {**EMPTY, "plan_0": "2", "plan_1": "86400"})
    desk.post(address(), EMPTY)
    with tenant_scope(tenant):
        assert queries.card_lifetime(Pace.PLAN, None) == settings.CARD_SECONDS["plan"]
    recorded = changes(tenant)
    assert [entry["change"] for entry in recorded] == ["added", "changed", "deleted"]
    assert recorded[0]["after"] == {"seconds": 129_600, "pace": "plan"}
    assert recorded[1]["before"] == {"seconds": 129_600}
    assert recorded[1]["after"] == {"seconds": 172_800}


def test_chatbot_has_a_time_of_its_own(tenant: Any, owner: Any) -> None:
    chatbot, desk = make_deployment(tenant), browser(owner)
    desk.post(address(), {**EMPTY, "gate_0": "5", "gate_1": "60"})
    assert "Empty: 5 min." in desk.get(address(chatbot)).content.decode()
    saved = desk.post(address(chatbot), {**EMPTY, "gate_0": "15", "gate_1": "60"})
    assert saved["Location"] == address(chatbot)
    with tenant_scope(tenant):
        assert queries.card_lifetime(Pace.GATE, chatbot.pk) == 900
        assert queries.card_lifetime(Pace.GATE, None) == 300


@pytest.mark.parametrize("whose", ["company", "chatbot"])
def test_first_times_of_rivals_are_set_one_after_the_other(tenant: Any, owner: Any, whose: str) -> None:
    where = address(make_deployment(tenant) if whose == "chatbot" else None)
    desks = [browser(owner) for _ in range(3)]
    typed = [{**EMPTY, "plan_0": number} for number in ("5", "6", "7")]
    answers = race(*(partial(desk.post, where, each) for desk, each in zip(desks, typed, strict=True)))
    assert [answer.status_code for answer in answers] == [302] * 3
    assert [entry["change"] for entry in changes(tenant)] == ["added", "changed", "changed"]


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        ("9", "1"),
        ("31", "86400"),
        ("0", "60"),
        ("-5", "60"),
        ("soon", "60"),
        ("1", "7"),
        ("1", ""),
        ("2147483647", "86400"),
    ],
)
def test_wrong_time_is_refused(tenant: Any, owner: Any, number: str, unit: str) -> None:
    refused = browser(owner).post(address(), {**EMPTY, "plan_0": number, "plan_1": unit})
    assert refused.status_code == 422
    assert b"Nothing was saved" in refused.content
    with tenant_scope(tenant):
        assert not CardTiming.objects.exists()


def test_foreign_unknown_and_malformed_chatbot_is_not_found(owner: Any, other_tenant: Any) -> None:
    desk, foreign = browser(owner), make_deployment(other_tenant)
    for asked in (foreign.pk, uuid4(), "x", "%00"):
        where = f"{address()}?chatbot={asked}"
        assert desk.get(where).status_code == 404
        assert desk.post(where, {**EMPTY, "plan_0": "5"}).status_code == 404
    with tenant_scope(other_tenant):
        assert not CardTiming.objects.exists()


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_only_owners_open_and_change_it(tenant: Any, role: str) -> None:
    desk = browser(make_member(tenant, role))
    assert desk.get(address()).status_code == 403
    assert desk.post(address(), {**EMPTY, "plan_0": "5"}).status_code == 403
    with tenant_scope(tenant):
        assert not CardTiming.objects.exists()


def test_service_refuses_what_is_out_of_bounds(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        change_card_timings({Pace.PLAN: 9}, deployment_id=None, actor="system")
    assert refused.value.code == "invalid"


def test_console_and_administration_lead_to_each_other(tenant: Any, owner: Any) -> None:
    desk = browser(owner)
    desk.post(address(), {**EMPTY, "plan_0": "5"})
    assert reverse("admin:approvals_cardtiming_changelist") in desk.get(address()).content.decode()
    with tenant_scope(tenant):
        row = CardTiming.objects.get()
    assert address() in desk.get(reverse("admin:approvals_cardtiming_change", args=[row.pk])).content.decode()
