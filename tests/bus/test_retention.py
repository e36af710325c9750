"""Each tenant, and the installation, has one standing message that deletes what has outlived its time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.bus import retention, services
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.tenants import emails
from apps.tenants.enums import EmailKind
from apps.tenants.models import Letter, Tenant
from kernel.clock import now
from kernel.tenancy import INSTALLATION, tenant_scope
from tests.factories.upkeep import clean_up


def standing(tenant: Any) -> QueueMessage:
    with tenant_scope(tenant):
        message: QueueMessage = QueueMessage.objects.get(kind=Kind.RETENTION)
    return message


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The only steps there are."""
    only: list[Any] = []
    monkeypatch.setattr(retention, "_tenant_steps", only)
    return only


def test_tenants_begin_with_their_clean_up_scheduled_spread_over_the_hours(database: None) -> None:
    tenants = [Tenant.objects.create(slug=f"t-{uuid4().hex[:12]}", name="New") for _ in range(20)]
    times = [standing(each).available_at for each in tenants]
    assert max(times) <= now() + retention.EVERY
    assert max(times) - min(times) > retention.EVERY / 4


def test_step_is_called_until_nothing_is_left_and_comes_back_after_some_hours(tenant: Any, steps: list[Any]) -> None:
    left = [True, True, False]
    steps.append(lambda: left.pop(0))
    clean_up(tenant)
    assert left == []
    assert standing(tenant).state == "queued"
    assert standing(tenant).available_at > now() + retention.EVERY - timedelta(minutes=5)


def test_step_in_trouble_stops_no_other_and_is_tried_again(tenant: Any, steps: list[Any]) -> None:
    done: list[int] = []

    def fail() -> bool:
        raise ValueError

    def work() -> bool:
        done.append(1)
        return False

    steps.extend([fail, work])
    clean_up(tenant)
    assert done == [1]
    message = standing(tenant)
    assert message.attempts == 1
    assert message.reason == "ValueError"
    assert message.available_at < now() + timedelta(minutes=1)


def test_what_a_step_did_before_its_trouble_stays_done(tenant: Any, steps: list[Any]) -> None:
    def work_once() -> bool:
        if QueueMessage.objects.filter(kind=Kind.LOST_CALLS).exists():
            raise ValueError
        services.enqueue(Kind.LOST_CALLS, scope_id="calls", due_at=now() + timedelta(hours=1))
        return True

    steps.append(work_once)
    clean_up(tenant)
    with tenant_scope(tenant):
        assert QueueMessage.objects.filter(kind=Kind.LOST_CALLS).exists()
    assert standing(tenant).reason == "ValueError"


def test_letters_that_ended_a_month_ago_are_deleted(database: None) -> None:
    kept, gone, waiting = (
        emails.enqueue(EmailKind.RESET, f"{uuid4().hex}@example.test", origin="https://x.test") for _ in range(3)
    )
    Letter.objects.filter(pk=gone.pk).update(ended_at=now() - timedelta(days=31))
    Letter.objects.filter(pk=kept.pk).update(ended_at=now() - timedelta(days=29))
    with tenant_scope(INSTALLATION):
        QueueMessage.objects.filter(kind=Kind.ACCOUNT_MAIL).delete()
    clean_up(INSTALLATION)
    assert set(Letter.objects.filter(pk__in=[kept.pk, gone.pk, waiting.pk])) == {kept, waiting}
