"""While you were away: counts of the right span, lines with their entries, nothing of other tenants."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.queries import within_period
from apps.audit.services import record
from apps.audit.writers import ONLY_FOR
from apps.tenants.models import Visit
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.audit import make_entries
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member
from tests.factories.work import make_desk


def _page(user: Any, **query: str) -> str:
    html = browser(user).get(reverse("console-away"), query).content.decode()
    return re.sub(r"<(?:b|/b|span[^>]*|/span)>", "", html)


def _note(tenant: Any, event: AuditEvent, times: int = 1, subject: str = "", **data: Any) -> None:
    with tenant_scope(tenant):
        for _ in range(times):
            is_members = any(event in events for kinds, events in ONLY_FOR.items() if "user" in kinds.split())
            actor = "user:1" if is_members else "system"
            record(event, actor=actor, subject=subject or f"session:{uuid4()}", data=data)


def _was_here_until_now(tenant: Any, user: Any) -> None:
    """Here again, after a visit that ends now."""
    at = now()
    with tenant_scope(tenant):
        Visit.objects.create(user=user, since=at, last_at=at, before=at)


def test_nothing_of_another_tenant_is_told(tenant: Any, other_tenant: Any) -> None:
    make_card(tenant, intent="Secret of the first tenant")
    _note(tenant, AuditEvent.TURN_COMPLETED, 3)
    page = _page(make_member(other_tenant, "owner"))
    assert "Secret" not in page
    assert "No answers sent" in page


def test_quiet_span_says_so(owner: Any) -> None:
    page = _page(owner)
    assert "Nothing is waiting for a person" in page
    assert "Nothing was changed" in page
    assert "Nothing was refused" in page


def test_conversations_are_counted_once_however_often_they_were_answered(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.TURN_COMPLETED, 4, subject=f"session:{uuid4()}")
    _note(tenant, AuditEvent.TURN_COMPLETED, 2)
    assert "Answered in 3 conversations." in _page(viewer)


def test_conversations_with_a_person_are_counted_once(tenant: Any, viewer: Any) -> None:
    one = f"session:{uuid4()}"
    for event in (AuditEvent.PERSON_WANTED, AuditEvent.TAKEN_OVER, AuditEvent.STAFF_REPLIED):
        _note(tenant, event, subject=one)
    assert "1 conversation handed over to a person." in _page(viewer)


def test_work_that_was_proved_is_told_with_its_entry(tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    desk.approved(owner)
    desk.work()
    page = _page(owner)
    with tenant_scope(tenant):
        done = AuditEntry.objects.filter(event="work_moved").latest("seq")
    assert "1 task completed and independently verified." in page
    assert f'href="{reverse("console-entry", args=[done.seq])}"' in page


def test_work_that_failed_is_no_work_done(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.WORK_MOVED, subject=f"work:{uuid4()}", status="failed", reason="")
    page = _page(viewer)
    assert "1 task failed or could not be verified" in page
    assert "independently verified" not in page


def test_what_waits_is_told_with_its_card(tenant: Any, viewer: Any) -> None:
    card = make_card(tenant)
    page = _page(viewer)
    assert "1 decision is waiting for a person." in page
    assert reverse("console-card", args=[card.pk]) in page


def test_what_waits_is_told_however_long_ago_it_was_asked(tenant: Any, viewer: Any) -> None:
    make_card(tenant)
    _was_here_until_now(tenant, viewer)
    assert "1 decision is waiting for a person." in _page(viewer)


def test_visitors_without_a_person_are_told(tenant: Any, deployment: Any, viewer: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(tenant):
        type(session).objects.filter(pk=session.pk).update(wanted_person_at=now())
    assert "1 visitor is waiting for a person." in _page(viewer)


def test_refusals_are_counted_and_told_once(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.GATE_BLOCKED, 3, subject=f"session:{uuid4()}", gate="words")
    page = _page(viewer)
    assert "3 actions were refused, blocked or stopped." in page
    assert page.count("Blocked by policy") == 1


def test_offer_to_undo_that_ended_is_not_counted_as_refused(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.CARD_EXPIRED, kind="post_execution")
    assert "Nothing was refused." in _page(viewer)
    _note(tenant, AuditEvent.CARD_EXPIRED, kind="decision")
    assert "1 action was refused, blocked or stopped." in _page(viewer)


@pytest.mark.parametrize(("role", "told"), [("owner", True), ("approver", True), ("agent", False), ("viewer", False)])
def test_money_is_told_to_those_who_see_the_spending(tenant: Any, role: str, told: bool, request: Any) -> None:
    assert ('id="away-spent"' in _page(request.getfixturevalue(role))) is told


def test_what_happened_before_the_last_visit_is_not_told(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.TURN_COMPLETED, 2)
    _was_here_until_now(tenant, viewer)
    assert "No answers sent" in _page(viewer)


def test_span_goes_before_the_last_visit(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.TURN_COMPLETED, 2)
    _was_here_until_now(tenant, viewer)
    assert "Answered in 2 conversations" in _page(viewer, span="24h")


def test_chosen_moment_goes_before_both(tenant: Any, viewer: Any) -> None:
    _note(tenant, AuditEvent.TURN_COMPLETED, 2)
    chosen = f"{timezone.localtime(now() - timedelta(minutes=5)):%Y-%m-%dT%H:%M}"
    assert "Answered in 2 conversations" in _page(viewer, since=chosen, span="7d")


def test_first_visit_is_told_about_the_last_day(viewer: Any) -> None:
    assert "This is your first visit" in _page(viewer)


@pytest.mark.parametrize(
    "since", ["x", "2026-13-45T99:99", "0001-01-01T00:00", "9999-12-31T23:59", "\x00", "1900-01-01"]
)
def test_moment_that_is_none_is_no_error(viewer: Any, since: str) -> None:
    assert browser(viewer).get(reverse("console-away"), {"since": since}).status_code == 200


def test_page_links_every_kind_to_its_timeline(tenant: Any, viewer: Any) -> None:
    day = f"{timezone.localdate() - timedelta(days=1):%Y-%m-%d}"
    assert f"/console/activity/?show=work&amp;from={day}" in _page(viewer)


def test_span_is_found_by_numbers_and_by_moments(tenant: Any) -> None:
    make_entries(tenant, 9)
    with tenant_scope(tenant):
        moments = list(AuditEntry.objects.order_by("seq").values_list("timestamp", flat=True))
        found = AuditEntry.objects.filter(within_period(tenant.pk, moments[3], moments[6])).values_list(
            "seq", flat=True
        )
        assert set(found) == {place + 1 for place, at in enumerate(moments) if moments[3] <= at < moments[6]}


@pytest.mark.parametrize("count", [1, 3])
def test_number_of_entries_does_not_change_the_number_of_queries(tenant: Any, viewer: Any, count: int) -> None:
    _note(tenant, AuditEvent.GATE_BLOCKED, count, gate="words")
    _note(tenant, AuditEvent.TAKEN_OVER, count)
    for _ in range(count):
        make_card(tenant)
    make_entries(tenant, 16 - 3 * count)  # as many entries either way: a span is found by halving
    client = browser(viewer)
    with CaptureQueriesContext(connection) as queries:
        client.get(reverse("console-away"))
    assert len(queries) == QUERIES


QUERIES = 34
