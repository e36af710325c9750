"""Insights about decisions: the numbers beside their targets, also as tables."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind
from apps.approvals.models import Look
from apps.approvals.queries import face_hash
from apps.console.charts import HEIGHT, WIDTH, columns, share_width
from apps.console.pages.insights.views import _fatigue, _share, _taps, _time
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.cards import make_kind
from tests.factories.console import browser
from tests.factories.tenants import make_member


def decided(tenant: Any, user: Any, choice: str = "approve", **fields: Any) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW, **{"reversible": True, **fields})
    with tenant_scope(tenant):
        Look.objects.create(card=card, user=user, first_at=now() - timedelta(seconds=3))
        answer_card(card.pk, user=user, choice=choice, face=face_hash(card))


def page(user: Any, days: str = "") -> str:
    return str(browser(user).get(reverse("console-insights"), {"days": days} if days else {}).content.decode())


def test_page_without_decisions_says_so(owner: Any) -> None:
    assert "No decisions in this period" in page(owner)


def test_numbers_stand_in_tables_beneath_the_drawings(tenant: Any, owner: Any) -> None:
    for choice in ("approve", "approve", "approve", "decline"):
        decided(tenant, owner, choice)
    found = page(owner)
    assert "<td>4</td><td>1</td>" in found
    assert "Send letter" in found.replace("send letter", "Send letter")


def test_every_drawing_has_its_table(tenant: Any, owner: Any) -> None:
    decided(tenant, owner)
    found = page(owner)
    assert found.count('<svg class="columns"') == found.count('<details class="numbers">') == 2


def test_drawings_are_not_read_aloud(tenant: Any, owner: Any) -> None:
    decided(tenant, owner)
    assert set(re.findall(r'<svg class="columns"[^>]*?(aria-hidden="\w+")', page(owner))) == {'aria-hidden="true"'}


def test_decline_rate_is_shown_beside_its_target(tenant: Any, owner: Any) -> None:
    for choice in ("approve",) * 9 + ("decline",):
        decided(tenant, owner, choice)
    told = re.search("<h2>Declined</h2>(.*?)</li>", page(owner), re.S)
    assert told
    assert re.sub("<.*?>", "", told[1]).replace("\N{NO-BREAK SPACE}", " ") == "10 %on target: 5 to 15 %"


def test_share_of_a_few_decisions_is_not_judged(tenant: Any, owner: Any) -> None:
    decided(tenant, owner)
    found = page(owner)
    assert "too few decisions" in found
    assert "off target" not in found
    assert "Check that cards are read" not in found


def test_other_tenants_numbers_are_not_shown(other_tenant: Any, owner: Any) -> None:
    decided(other_tenant, make_member(other_tenant, "owner"))
    assert "No decisions in this period" in page(owner)


def test_markup_in_the_name_of_an_action_is_escaped(tenant: Any, owner: Any) -> None:
    decided(tenant, owner, details={"family": "<img src=x>"})
    assert "<img" not in page(owner)


@pytest.mark.parametrize("days", ["0", "-1", "all", "1e9", "9" * 400])
def test_span_that_is_not_offered_is_a_week(owner: Any, days: str) -> None:
    assert 'href="/console/insights/?days=7" aria-current="true"' in page(owner, days)


@pytest.mark.parametrize("count", [1, 12])
def test_page_takes_the_same_queries_for_any_number_of_decisions(
    tenant: Any, owner: Any, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        decided(tenant, owner)
    client = browser(owner)
    with django_assert_num_queries(QUERIES):
        client.get(reverse("console-insights"))


QUERIES = 28  # two of them for the rail: the budget alert and the unread notifications


@pytest.mark.parametrize(("median", "state"), [(None, ""), (0.4, "bad"), (3.0, "ok"), (8.0, ""), (45.0, "bad")])
def test_decision_time_is_judged_by_its_target(median: float | None, state: str) -> None:
    assert _time("Low", median, aim=(2.0, 5.0)).state == state


@pytest.mark.parametrize(("share", "state"), [(None, ""), (0.01, "bad"), (0.1, "ok"), (0.31, "bad")])
def test_share_is_judged_by_its_target(share: float | None, state: str) -> None:
    assert _share("Declined", share, "5 to 15 %", (0.3, "no"), low=0.02).state == state


@pytest.mark.parametrize(("taps", "state"), [(None, ""), (3.0, "ok"), (3.1, "bad")])
def test_taps_are_judged_by_their_target(taps: float | None, state: str) -> None:
    assert _taps(taps).state == state


@pytest.mark.parametrize(("triggers", "days", "state"), [(0, 7, "ok"), (1, 7, "bad"), (3, 30, "ok"), (5, 30, "bad")])
def test_fatigue_is_judged_by_the_week(triggers: int, days: int, state: str) -> None:
    assert _fatigue(triggers, days).state == state


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=90))
def test_columns_stay_within_the_drawing(values: list[int]) -> None:
    drawn = columns([str(value) for value in values], values)
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH and 0 <= bar.y <= HEIGHT for bar in drawn.bars)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=90))
def test_columns_grow_with_their_values(values: list[int]) -> None:
    heights = [bar.height for bar in columns([""] * len(values), values).bars]
    assert [values[i] for i in sorted(range(len(values)), key=lambda i: (heights[i], values[i]))] == sorted(values)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=400))
def test_no_more_names_than_fit_are_written(values: list[int]) -> None:
    assert len(columns([""] * len(values), values).labelled) <= 8


@pytest.mark.parametrize(("share", "width"), [(None, 0.0), (-1.0, 0.0), (0.25, 25.0), (7.0, 100.0)])
def test_share_reaches_as_far_as_it_goes(share: float | None, width: float) -> None:
    assert share_width(share) == width
