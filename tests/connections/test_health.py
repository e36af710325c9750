"""A connection is checked once, renewed in time and once, recovered once, and then a card is opened."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection as database
from django.urls import reverse

from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.connections import credentials, rules, scripts
from apps.connections.enums import ConnectionStatus, FailureType
from apps.connections.models import Connection
from apps.connections.schemas import ConnectionFailure
from apps.connections.services import health, lifecycle, recovery
from apps.connections.services.status import schedule_check
from apps.guard.models import ToolCall
from apps.skills import rules as skill_rules
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.connections.links import make_skill, said_yes
from tests.connections.test_setup import attend_owed
from tests.factories.bus import carry_out_kinds, lease_any, let_leases_run_out
from tests.factories.connections import check_due, make_connection, reread
from tests.factories.console import browser
from tests.rivals import race


def linked(tenant: Any, *, scripts: dict[str, str | None] | None = None, **fields: Any) -> Connection:
    """An active connection whose check is due."""
    version = make_skill(tenant, **(scripts or {}))
    row = make_connection(
        tenant,
        skill=skill_rules.reference(version.name, version.digest),
        **{"next_check_at": now() - timedelta(seconds=1), **fields},
    )
    with tenant_scope(tenant):
        credentials.store(row.pk, {"token": "first"})
    return row


def events(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return list(AuditEntry.objects.order_by("seq").values_list("event", flat=True))


def token(tenant: Any, row: Connection) -> str:
    with tenant_scope(tenant):
        return credentials.unseal_all(row.pk)["token"]


def test_healthy_connection_is_due_again_by_its_schedule(tenant: Any) -> None:
    row = linked(tenant)
    assert check_due(tenant) == 1
    after = reread(row)
    assert after.last_health_check is not None and after.next_check_at > now()
    assert check_due(tenant) == 0


def test_card_about_a_sign_in_that_ends_soon_says_when_and_why_it_came(tenant: Any, owner: Any) -> None:
    row = make_connection(tenant, refresh_token_expires_at=now() + timedelta(days=3))
    with tenant_scope(tenant):
        card = recovery.open_reconnect_card(row)
    assert card is not None
    ends = row.refresh_token_expires_at
    assert card.intent == f"The sign-in of Shop mail ends on {ends:%Y-%m-%d} (UTC)"
    page = browser(owner).get(reverse("console-card", args=[card.pk])).content.decode()
    assert "Suggested because a sign-in expires soon" in page
    assert "by a goal" not in page


def test_token_that_ends_soon_is_renewed_and_nobody_is_asked(tenant: Any) -> None:
    row = linked(tenant, token_expires_at=now() + timedelta(minutes=9))
    check_due(tenant)
    assert token(tenant, row) == "renewed-once" and reread(row).last_refresh is not None
    assert "connection_refreshed" in events(tenant)
    with tenant_scope(tenant):
        assert Card.objects.count() == 0


def test_rivals_renew_once(tenant: Any) -> None:
    count = 'hand_over(**{"token": held["token"] + "+"}); say({"success": True})'
    row = linked(tenant, scripts={"refresh_token": count}, token_expires_at=now() + timedelta(minutes=1))
    race(*[lambda: _checked(tenant) for _ in range(4)])
    assert token(tenant, row) == "first+"


def _checked(tenant: Any) -> int:
    try:
        return check_due(tenant)
    finally:
        database.close()


def test_lease_of_a_lost_worker_runs_out_and_its_late_answer_counts_for_nothing(tenant: Any) -> None:
    row = linked(tenant)
    with tenant_scope(tenant):
        schedule_check(row)
        lost = lease_any(Queue.UPKEEP, consumer="lost")
        assert lost is not None
        assert lease_any(Queue.UPKEEP, consumer="other") is None
        assert health.lock_leased(row.pk, lost.ref) == row
    let_leases_run_out(tenant)
    assert check_due(tenant) == 1
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        health.lock_leased(row.pk, lost.ref)
    assert refused.value.code == "lease_lost"


def test_check_that_had_its_effect_before_its_worker_died_is_not_made_twice(tenant: Any) -> None:
    row = linked(tenant)
    with tenant_scope(tenant):
        schedule_check(row)
        Connection.objects.update(next_check_at=now() + timedelta(hours=1))
    carry_out_kinds(tenant, Kind.CONNECTION_CHECK)
    with tenant_scope(tenant):
        assert not ToolCall.objects.exists()
        assert QueueMessage.objects.get().available_at == Connection.objects.get().next_check_at


def test_paused_connection_is_not_checked_until_it_is_resumed(tenant: Any) -> None:
    row = linked(tenant)
    with tenant_scope(tenant):
        lifecycle.pause(row.pk, actor="system")
    assert check_due(tenant) == 0
    with tenant_scope(tenant):
        lifecycle.resume(row.pk, actor="system")
    carry_out_kinds(tenant, Kind.CONNECTION_CHECK)
    assert reread(row).last_health_check is not None


def test_connection_that_does_not_work_is_recovered_once_and_then_told(tenant: Any) -> None:
    row = linked(tenant, scripts={"health_check": 'say({"healthy": False, "error": "odd"})'})
    check_due(tenant)
    assert reread(row).status == ConnectionStatus.ACTIVE
    assert reread(row).recovered is True
    with tenant_scope(tenant):
        Connection.objects.update(next_check_at=now())
    check_due(tenant)
    attend_owed(tenant)
    assert reread(row).status == ConnectionStatus.FAILED
    assert events(tenant).count("connection_recovered") == 1
    with tenant_scope(tenant):
        assert Card.objects.get().kind == "connection_failure"


def test_connection_whose_skill_cannot_recover_is_told_at_once(tenant: Any) -> None:
    row = linked(tenant, scripts={"health_check": 'say({"healthy": False, "error": "odd"})', "recover": None})
    check_due(tenant)
    assert reread(row).status == ConnectionStatus.FAILED
    assert "connection_recovered" not in events(tenant)


def test_expired_token_is_renewed_before_anything_else_is_tried(tenant: Any) -> None:
    row = linked(tenant, scripts={"health_check": 'say({"healthy": False, "error": "token_expired"})'})
    check_due(tenant)
    assert token(tenant, row) == "renewed-once" and "connection_recovered" not in events(tenant)


REVOKED = 'say({"success": False, "failure": {"failure_type": "token_revoked"}}); sys.exit(1)'


def test_revoked_refresh_fails_the_connection_with_its_reason(tenant: Any) -> None:
    scripts = {"refresh_token": REVOKED, "recover": REVOKED}
    row = linked(tenant, scripts=scripts, token_expires_at=now() - timedelta(minutes=1))
    check_due(tenant)
    attend_owed(tenant)
    assert reread(row).failure["failure_type"] == "token_revoked"
    again = said_yes(tenant, row, _owner(tenant), "reconnect") if _approved(tenant, row) else None
    assert again is not None and reread(row).status == ConnectionStatus.CONNECTING


def _owner(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "owner")


def _approved(tenant: Any, row: Connection) -> bool:
    from tests.factories.connections import make_setup

    return make_setup(row, state="done") is not None


@pytest.mark.parametrize(("used_days", "told"), [(3, "connection_warned"), (60, "proactive_refresh_dormant")])
def test_refresh_token_that_ends_is_told_when_used_and_renewed_in_silence_when_not(
    tenant: Any, used_days: int, told: str
) -> None:
    linked(
        tenant,
        refresh_token_expires_at=now() + timedelta(days=5),
        last_used=now() - timedelta(days=used_days),
    )
    check_due(tenant)
    attend_owed(tenant)
    assert told in events(tenant)
    with tenant_scope(tenant):
        assert Card.objects.filter(kind="suggestion").exists() == (used_days == 3)


@pytest.mark.parametrize(("days", "told"), [(8, False), (6, True)])
def test_person_is_told_within_seven_days_of_the_end(tenant: Any, days: int, told: bool) -> None:
    linked(tenant, refresh_token_expires_at=now() + timedelta(days=days), last_used=now())
    check_due(tenant)
    assert ("connection_warned" in events(tenant)) is told


def test_who_wants_to_be_reminded_is_told_again_a_day_nearer_and_not_before(tenant: Any, owner: Any) -> None:
    ends = now() + timedelta(days=5, minutes=5)
    row = linked(tenant, refresh_token_expires_at=ends, last_used=now())
    for nearer in (0, 0, 1, 1):
        with tenant_scope(tenant):
            Connection.objects.update(refresh_token_expires_at=ends - timedelta(days=nearer), next_check_at=now())
        check_due(tenant)
        attend_owed(tenant)
        with tenant_scope(tenant):
            waits = Card.objects.filter(status="open", kind="suggestion").exists()
        said_yes(tenant, row, owner, "remind_later") if waits else None
    assert events(tenant).count("connection_warned") == 2
    assert reread(row).warned_at is None


def test_who_was_told_is_not_told_again(tenant: Any) -> None:
    ends = now() + timedelta(days=5)
    linked(tenant, refresh_token_expires_at=ends, last_used=now())
    for nearer in (0, 1):
        with tenant_scope(tenant):
            Connection.objects.update(refresh_token_expires_at=ends - timedelta(days=nearer), next_check_at=now())
        check_due(tenant)
    assert events(tenant).count("connection_warned") == 1


@pytest.mark.parametrize("kind", list(FailureType))
def test_every_failure_has_a_card_whose_ways_out_can_be_pressed(tenant: Any, kind: FailureType) -> None:
    row = make_connection(tenant, status=ConnectionStatus.FAILED)
    with tenant_scope(tenant):
        Connection.objects.update(failure=ConnectionFailure(failure_type=kind).model_dump(mode="json"))
        card = recovery.open_failure_card(Connection.objects.get(pk=row.pk))
        assert card is not None and recovery.open_failure_card(Connection.objects.get(pk=row.pk)) is None
    offered = [each["action"] for each in card.payload["recovery_options"]]
    assert offered[-1] == "skip" and len(offered) >= 2 and set(offered[:-1]) <= set(card.consequence)


def test_script_cannot_word_the_failure_card(tenant: Any) -> None:
    said = ConnectionFailure(failure_type=FailureType.UNKNOWN, message="Type your password here")
    assert "password" not in str(rules.failure_payload(said, "Shop mail"))


def test_retry_later_looks_again_after_a_while(tenant: Any, owner: Any) -> None:
    row = make_connection(tenant, status=ConnectionStatus.FAILED)
    with tenant_scope(tenant):
        Connection.objects.update(failure={"failure_type": "rate_limited", "retry_minutes": 30})
        recovery.open_failure_card(Connection.objects.get(pk=row.pk))
    said_yes(tenant, row, owner, "retry_later")
    after = reread(row)
    assert after.status == ConnectionStatus.ACTIVE and after.next_check_at > now() + timedelta(minutes=25)


@pytest.mark.parametrize(
    "says", ["print('garbage')", "sys.exit(1)", "print('x' * 10_000_000)", "import time; time.sleep(60)"]
)
def test_check_that_does_not_answer_is_not_healthy(tenant: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "ONE_SHOT_SECONDS", 2.0)
    row = linked(tenant, scripts={"health_check": says, "recover": None})
    check_due(tenant)
    assert reread(row).status == ConnectionStatus.FAILED
    assert token(tenant, row) == "first"


def test_token_that_ends_later_is_left_alone_and_looked_at_in_time(tenant: Any) -> None:
    ends = now() + timedelta(minutes=12)
    row = linked(tenant, token_expires_at=ends)
    check_due(tenant)
    after = reread(row)
    assert after.last_refresh is None
    assert token(tenant, row) == "first"
    assert after.next_check_at <= ends - timedelta(minutes=10)
