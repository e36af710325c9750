"""Each option of a failure card does what it says (spec 5.10.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.bus.models import QueueMessage
from apps.connections.enums import ConnectionStatus, FailureType
from apps.connections.models import Connection, ItRequest
from apps.connections.schemas import ConnectionFailure
from apps.connections.services import recovery
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.connections.links import said_yes
from tests.factories.connections import hold, make_connection, make_setup, reread

ALL, READS = ["Mail.Read", "Mail.Send"], ["Mail.Read"]
# For each failure, the ways out in their order, and what is asked for at the service afterwards; None: nothing.
WAYS: list[tuple[str, str, list[str] | None]] = [
    ("enterprise_policy_block", "request_admin_approval", None),
    ("enterprise_policy_block", "use_personal_account", ALL),
    ("consent_denied", "retry", ALL),
    ("consent_denied", "retry_fewer_permissions", READS),
    ("mfa_required", "retry", ALL),
    ("token_revoked", "reconnect", ALL),
    ("rate_limited", "retry_later", None),
    ("service_unavailable", "retry_later", None),
    ("unknown", "retry", ALL),
    ("unknown", "reconnect", ALL),
]


def broken(tenant: Any, kind: str, **fields: Any) -> Connection:
    """A connection that was active once, with an open failure card."""
    failure = ConnectionFailure(failure_type=FailureType(kind), retry_minutes=40).model_dump(mode="json")
    made = {"status": ConnectionStatus.FAILED, "failure": failure, "permissions_granted": ALL, **fields}
    row = make_connection(tenant, **made)
    make_setup(row, state="done" if row.permissions_granted else "failed", ended_at=now())
    with tenant_scope(tenant):
        recovery.open_failure_card(reread(row))
    return row


def offered(tenant: Any) -> list[tuple[str, str]]:
    with tenant_scope(tenant):
        return [(each["action"], each["label"]) for each in Card.objects.get().payload["recovery_options"]]


@pytest.mark.parametrize("kind", list(FailureType))
def test_card_offers_the_ways_out_of_its_failure_and_to_skip(tenant: Any, kind: FailureType) -> None:
    broken(tenant, kind)
    assert [way for way, _ in offered(tenant)] == [way for one, way, _ in WAYS if one == kind] + ["skip"]


@pytest.mark.parametrize(("kind", "way", "wanted"), WAYS)
def test_way_out_begins_what_it_says(tenant: Any, owner: Any, kind: str, way: str, wanted: list[str] | None) -> None:
    row = broken(tenant, kind)
    setup = said_yes(tenant, row, owner, way)
    assert (setup.wanted if setup else None) == wanted
    with tenant_scope(tenant):
        assert ItRequest.objects.exists() == (way == "request_admin_approval")
    status = {"request_admin_approval": "failed", "retry_later": "active"}.get(way, "connecting")
    assert reread(row).status == status


@pytest.mark.parametrize("kind", list(FailureType))
def test_skipped_failure_leaves_it_broken(tenant: Any, owner: Any, kind: FailureType) -> None:
    row = broken(tenant, kind)
    setup = said_yes(tenant, row, owner, "decline")
    assert setup is None
    assert reread(row).status == ConnectionStatus.FAILED
    with tenant_scope(tenant):
        assert not ItRequest.objects.exists()


def test_service_that_wants_some_time_is_given_it(tenant: Any, owner: Any) -> None:
    row = broken(tenant, "rate_limited")
    assert offered(tenant)[0][1] == "Retry in 40 minutes"
    said_yes(tenant, row, owner, "retry_later")
    assert timedelta(minutes=39) < reread(row).next_check_at - now() < timedelta(minutes=41)


def test_setup_at_a_service_that_wants_some_time_begins_after_it(tenant: Any, owner: Any) -> None:
    """It was never connected: there is nothing to look at, but somebody to sign in."""
    row = broken(tenant, "rate_limited", permissions_granted=[], initial_permissions=READS)
    setup = said_yes(tenant, row, owner, "retry_later")
    assert setup is not None
    assert setup.wanted == READS
    assert hold(tenant, setup) is False
    assert setup.begins_at is not None
    assert setup.begins_at > now() + timedelta(minutes=30)
    assert setup.deadline > now() + timedelta(minutes=60)
    with tenant_scope(tenant):
        assert QueueMessage.objects.get(kind="connection_setup").available_at == setup.begins_at
