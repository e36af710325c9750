"""Members are pushed to about an agent that waits, once, without a word of what it intends and without a code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.bus.enums import Queue
from apps.safety.models import Challenge, Hold
from apps.safety.services import notices
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.console.test_push import Device, push_service, subscribe
from tests.factories.bus import let_waits_pass
from tests.factories.safety import DANGER, TO_CONFIRM, TO_VERIFY, started
from tests.factories.work import Hands
from tests.rivals import race


@pytest.fixture(autouse=True)
def _secrets(settings: Any) -> None:
    settings.SILAS_SECRETS_KEY = "a-secrets-key"


@contextmanager
def told(tenant: Any, user: Any, *hints: str) -> Iterator[list[dict[str, Any]]]:
    """What the member's browser reads of agents that wait."""
    device = Device()
    with push_service() as (endpoint, got):
        subscribe(tenant, user, endpoint, device)
        for at, hint in enumerate(hints):
            started(tenant, f"clerk-{at}").report(hint)
        Hands(tenant).work(Queue.TRUSTED)
        let_waits_pass(tenant)
        Hands(tenant).work(Queue.TRUSTED)
        yield [device.read(body) for _, body in got]


def test_waiting_agent_is_pushed_once_without_a_word_of_it_and_without_a_code(tenant: Any, approver: Any) -> None:
    with told(tenant, approver, DANGER) as read, tenant_scope(tenant):
        hold = Hold.objects.get()
        since = int(hold.created_at.timestamp())
        where = f"/console/safety/#hold-{hold.pk}"
        assert read == [{"about": "agent", "count": 1, "risk": "irreversible", "url": where, "since": since}]
        assert Challenge.objects.get().hashed == ""


def test_many_waiting_agents_are_one_push(tenant: Any, approver: Any) -> None:
    with told(tenant, approver, *[TO_CONFIRM] * 3, TO_VERIFY) as read:
        assert [(one["count"], one["risk"], one["url"]) for one in read] == [(4, "high", "/console/safety/")]


def test_agent_that_was_let_go_meanwhile_or_is_of_another_company_is_not_pushed(
    tenant: Any, other_tenant: Any, approver: Any
) -> None:
    agent = started(tenant)
    agent.report(DANGER)
    agent.let_go()
    started(other_tenant).report(DANGER)
    with told(tenant, approver) as read:
        assert read == []


def test_waiting_agent_is_pushed_to_nobody_who_decides_nothing(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    with tenant_scope(tenant):
        Membership.objects.filter(user=approver).update(role="viewer")
    started(tenant).report(DANGER)
    with tenant_scope(tenant):
        assert notices.claim_notices(now()) == []


def test_agents_that_come_after_a_push_are_told_together_a_moment_later(tenant: Any, approver: Any) -> None:
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint)
        started(tenant, "first").report(DANGER)
        Hands(tenant).work(Queue.TRUSTED)
        for at in range(4):
            started(tenant, f"clerk-{at}").report(TO_CONFIRM)
        Hands(tenant).work(Queue.TRUSTED)
        assert len(got) == 1
        let_waits_pass(tenant)
        Hands(tenant).work(Queue.TRUSTED)
    assert len(got) == 2


def test_of_rivals_one_pushes_about_a_waiting_agent(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    started(tenant).report(DANGER)

    def claim() -> int:
        with tenant_scope(tenant):
            return len(notices.claim_notices(now()))

    assert sorted(race(*[claim] * 3)) == [0, 0, 1]
