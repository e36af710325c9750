"""A finding is reported once, is gone when a run no longer sees it, and comes back as a new row with its history."""

from __future__ import annotations

from typing import Any

import pytest

from apps.autonomy.models import Finding
from apps.autonomy.services.findings import resolve_finding
from apps.skills.services import save_record
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import House
from tests.factories.tenants import make_member


def book(house: House, amount: float) -> None:
    house.do(save_record, "orders", "H-1", subject="K-1", data={"total": 10.0})
    data = {"order": "H-1", "amount": amount, "day": "2999-01-01"}
    house.do(save_record, "refunds", "RF-1", subject="K-1", data=data)


@pytest.fixture
def task(house: House) -> Any:
    book(house, 20.0)
    row = house.task(playbook="refund_anomalies", prompt="", limits={"calls": 60})
    house.through(row)
    return row


def rows(house: House) -> list[Finding]:
    return sorted(house.findings(), key=lambda finding: finding.created_at)


def test_finding_is_gone_when_its_cause_is_and_returns_with_its_history(house: House, task: Any) -> None:
    book(house, 5.0)
    house.through(task)
    (gone,) = rows(house)
    assert gone.gone_at is not None
    book(house, 20.0)
    house.through(task)
    first, second = rows(house)
    assert first.key == second.key
    assert first.gone_at is not None
    assert second.is_open


def test_resolved_finding_is_not_reported_again_while_it_lasts(house: House, task: Any) -> None:
    (finding,) = rows(house)
    house.do(resolve_finding, finding.pk, user=house.owner)
    house.through(task)
    (only,) = rows(house)
    assert only.resolved_by == house.owner
    assert only.gone_at is None


def test_resolving_twice_keeps_the_first_time(house: House, task: Any) -> None:
    (finding,) = rows(house)
    first = house.do(resolve_finding, finding.pk, user=house.owner).resolved_at
    assert house.do(resolve_finding, finding.pk, user=make_member(house.tenant, "agent")).resolved_at == first


def test_viewer_and_stranger_resolve_nothing(house: House, task: Any, other_tenant: Any) -> None:
    (finding,) = rows(house)
    with pytest.raises(SilasError) as refused:
        house.do(resolve_finding, finding.pk, user=make_member(house.tenant, "viewer"))
    assert refused.value.code == "forbidden_role"
    stranger = make_member(other_tenant, "owner")
    with pytest.raises(SilasError) as missing, tenant_scope(other_tenant):
        resolve_finding(finding.pk, user=stranger)
    assert missing.value.code == "not_found"


def test_stopped_run_closes_nothing(house: House, task: Any) -> None:
    book(house, 5.0)
    house.change(task, limits={"calls": 1})
    house.through(task)
    (finding,) = rows(house)
    assert finding.gone_at is None
