"""A company's time zone that this machine does not know, in an old row, stops nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.guard.locks import current_days
from apps.sessions import turn
from apps.tenants.models import Deployment, Tenant
from kernel.clock import now
from kernel.schedules import next_due
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say


@pytest.fixture
def lost(deployment: Deployment) -> Deployment:
    """Its company's row and its own name zones that do not exist."""
    Tenant.objects.filter(pk=deployment.tenant_id).update(timezone="Mars/Base")
    with tenant_scope(deployment.tenant_id):
        Deployment.objects.update(timezone="Europe/Atlantis", opening_hours={"mon": "08:00-09:00"})
    return deployment


async def test_visitor_who_wants_a_person_is_answered(lost: Deployment) -> None:
    session = await in_thread(make_session, lost)
    await in_thread(say, session, "I want to talk to a person")
    state = await in_scope(lost.tenant_id, turn.open_turn, session.pk, consumer="test")
    assert state is not None
    await turn.run(state)
    assert state.session.wanted_person_at is not None


def test_day_that_money_is_counted_by_is_utcs(lost: Deployment) -> None:
    with tenant_scope(lost.tenant_id):
        assert current_days()[0] == now().date()


def test_goal_is_looked_at_by_utc() -> None:
    assert next_due("0 9 * * *", after=now(), zone="Mars/Base").hour == 9


def test_staff_see_their_pages(lost: Deployment, owner: Any) -> None:
    assert browser(owner).get(reverse("console-insights")).status_code == 200
