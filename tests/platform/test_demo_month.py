"""The demo's month: thirty days that every page and every automation can read, seeded once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db.models import Count, F, Max

from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.models import AutonomousSession, Task
from apps.guard.models import SpendEntry
from apps.inbox.models import DeskState, SessionLabel
from apps.sessions import insights
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.skills.models import Record
from apps.tenants.models import Tenant
from apps.visitors.ratings import rating_figures
from kernel.clock import now
from kernel.tenancy import tenant_scope
from silas_platform import demo, demo_month
from tests.factories.months import FOLDER, MonthHouse, make_month


@pytest.fixture
def month(tenant: Any, tmp_path: Any) -> Iterator[MonthHouse]:
    house = make_month(tenant, tmp_path)
    with tenant_scope(tenant):
        yield house


def asked() -> insights.Asked:
    return insights.Asked(now() - timedelta(days=31), now(), "UTC")


def test_every_conversation_keeps_a_gap_free_number(month: MonthHouse) -> None:
    counted = ChronicleEntry.objects.values("session").annotate(many=Count("pk"), last=Max("seq"))
    assert all(row["many"] == row["last"] for row in counted)
    assert not ChatSession.objects.exclude(pk__in=counted.filter(last=F("session__seq")).values("session")).exists()


def test_nothing_is_dated_in_the_future(month: MonthHouse) -> None:
    assert not ChronicleEntry.objects.filter(created_at__gt=now()).exists()
    assert not SpendEntry.objects.filter(day__gt=now().date()).exists()


def test_insights_of_the_month_are_alive(month: MonthHouse) -> None:
    days = insights.by_day(asked())
    assert sum(day.conversations for day in days) == month.talks
    assert sum(day.with_person > 0 for day in days) >= 8
    turns = insights.turns(asked())
    assert turns.cited >= 40
    assert turns.failed == 2
    assert rating_figures(None, now() - timedelta(days=31), now()).by_score.keys() == {1, 5}


def test_inbox_and_spending_are_alive(month: MonthHouse) -> None:
    assert ChatSession.objects.filter(wanted_person_at__isnull=False).count() == 2
    assert DeskState.objects.filter(status="resolved").count() > 50
    assert SessionLabel.objects.count() > 40
    assert SpendEntry.objects.count() == 29
    assert max(SpendEntry.objects.values_list("amount", flat=True)) == Decimal("2.90")


def test_books_hold_the_refunds_and_their_sums(month: MonthHouse) -> None:
    assert Record.objects.get(book="orders", key="H-90411").data["refunded"] == 98.0
    assert Record.objects.filter(book="refunds").count() == 9


def test_month_is_seeded_once(month: MonthHouse) -> None:
    assert demo_month.seed_month(FOLDER, month.deployment, month.agent) == 0


def test_two_companies_have_their_own_month(tenant: Any, other_tenant: Any) -> None:
    talks = [make_month(one).talks for one in (tenant, other_tenant)]
    assert talks[0] == talks[1]
    with tenant_scope(other_tenant):
        assert ChatSession.objects.count() == talks[1]


def test_seeded_month_comes_with_the_automations_of_the_gallery(database: None) -> None:
    name = f"-{uuid4().hex[:8]}"
    demo.seed(progress=lambda _: None, copy=name, month=True)
    with tenant_scope(Tenant.objects.get(slug=f"harbor-retail{name}")):
        wanted = [template.key for template in TEMPLATES if not template.needs_model]
        assert sorted(Task.objects.values_list("playbook", flat=True)) == sorted(wanted)
        assert AutonomousSession.objects.count() == len(wanted)
