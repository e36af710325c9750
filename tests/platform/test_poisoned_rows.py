"""An unreadable row keeps no other row of its company, and no other company, from being processed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.worker import drain
from apps.bus.workers import Worker
from apps.knowledge import intake
from apps.knowledge.models import Collection, Intake
from apps.sessions import retention
from apps.sessions.models import ChatSession
from apps.work.enums import Waiting, WorkItemStatus, WorkReason
from apps.work.models import Course, WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards, open_card
from tests.factories.bus import let_leases_run_out, make_message
from tests.factories.tenants import make_deployment
from tests.factories.upkeep import clean_up
from tests.factories.work import end_waits, make_desk
from tests.sessions.test_retention import keep, silent, texts


@pytest.mark.parametrize(
    "payload", [None, {}, {"session": "no id"}, {"session": 7}, {"session": str(uuid4())}], ids=str
)
def test_lost_message_whose_row_cannot_be_told_keeps_no_other_lease(tenant: Any, payload: Any) -> None:
    for scope_id in ("broken", "fine"):
        make_message(tenant, scope_id=scope_id)
        with tenant_scope(tenant):
            assert bus.lease("executor", consumer="gone", scope_id=scope_id) is not None
    with tenant_scope(tenant):
        broken = QueueMessage.objects.filter(scope_id="broken")
        broken.update(kind=Kind.AUTONOMOUS_SESSION, payload=payload, attempts=4)
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        bus.expire_leases()
        assert QueueMessage.objects.get(scope_id="broken").state == "dead"
        assert QueueMessage.objects.get(scope_id="fine").state == "queued"


@pytest.mark.parametrize("focus", [[], "x", {"subscriptions": [{"nobody": 1}]}, {"forgotten": "much"}], ids=str)
def test_conversation_whose_settings_cannot_be_read_is_forgotten_with_the_others(tenant: Any, focus: Any) -> None:
    deployment = make_deployment(tenant)
    broken, fine = silent(deployment), silent(deployment)
    keep(tenant, conversation_days=30)
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=broken.pk).update(focus=focus)
    clean_up(tenant)
    assert texts(broken) == {retention.FORGOTTEN}
    assert texts(fine) == {retention.FORGOTTEN}


def test_card_whose_subject_is_gone_keeps_no_other_card_from_running_out_and_leaves_nothing_in_the_log(
    tenant: Any,
) -> None:
    broken = open_card(tenant, subject_kind="work_item", subject_id=uuid4())
    fine = open_card(tenant)
    with tenant_scope(tenant):
        Card.objects.update(created_at=now() - timedelta(days=2), expires_at=now() - timedelta(days=1))
    expire_cards(tenant)
    with tenant_scope(tenant):
        assert Card.objects.get(pk=fine.pk).status == "expired"
        assert Card.objects.get(pk=broken.pk).status == "open"
        assert not AuditEntry.objects.filter(event="card_expired", subject=f"card:{broken.pk}").exists()


def test_work_that_cannot_be_read_keeps_no_other_wait_from_ending(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path)
    broken, fine = desk.approved(approver), desk.approved(approver, 40)
    with tenant_scope(tenant):
        for item, reason in ((broken, "no reason"), (fine, WorkReason.VERIFICATION)):
            WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.PAUSED, reason=reason)
            Course.objects.filter(work_item=item).update(waiting_for=Waiting.REPLAN, waiting_until=now())
            bus.schedule(Kind.WAIT_END, scope_id=item.pk, due_at=now())
    end_waits(tenant)
    assert desk.item(fine.pk).status == WorkItemStatus.STUCK
    assert desk.item(broken.pk).status == WorkItemStatus.PAUSED


def test_intake_in_trouble_keeps_no_other_company_from_being_read(
    tenant: Any, other_tenant: Any, tmp_path: Path
) -> None:
    ids = [handed_in(each) for each in (tenant, other_tenant)]
    with tenant_scope(tenant):
        Intake.objects.filter(pk=ids[0]).update(name="x", content=None)
    drain(Worker.PARSE, consumer="test")
    drain(Worker.TRUSTED, consumer="test")
    with tenant_scope(tenant):
        assert Intake.objects.get(pk=ids[0]).state == "failed"
    with tenant_scope(other_tenant):
        assert Intake.objects.get(pk=ids[1]).state == "done"


def handed_in(tenant: Any) -> UUID:
    with tenant_scope(tenant):
        collection = Collection.objects.create(name="Rules")
        return intake.submit_file(
            collection.pk, name="rules.md", data=b"We open at nine.", once=uuid4(), actor="system"
        ).pk
