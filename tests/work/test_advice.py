"""Advice for work that fails: waiting for it, late answers, and which budget pays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import time_machine
from django.test import override_settings

from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.guard.models import Budget
from apps.work import attempt_jobs
from apps.work.enums import Waiting, WorkItemStatus
from kernel.clock import now
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall, call_block
from tests.factories.bus import lease_any
from tests.factories.planning import (
    advice,
    course,
    failing,
    messages,
    outcomes,
    paused,
)
from tests.factories.skills import save_record
from tests.factories.work import NOTED, end_waits
from tests.fakes.openai_server import FakeOpenAI
from tests.rivals import race


def test_third_failure_pauses_and_asks_the_planner(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    (question,) = messages(desk, "consult_planner")
    found = (item.status, item.attempts_made, course(desk, item).waiting_for)
    assert found == (WorkItemStatus.PAUSED, 3, Waiting.GUIDANCE)
    assert question.trace_id == item.trace_id
    assert question.attempt_number == 3


def test_pause_holds_no_delivery(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    assert [message.state for message in messages(desk, "execution_request")] == ["acked"]


def test_advice_resumes_with_the_next_attempt_under_its_heading(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    desk.work(Queue.PLANNER, Queue.RUNTIME)
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test", seconds=60)
        assert lease is not None
        job = attempt_jobs.next_job(Delivery(tenant.pk, lease, "test"))
    assert job is not None
    assert job.attempt.number == item.attempts_made + 1
    body = job.briefing.work_body
    assert "# Previous attempt 3 failed\n\n> " in body
    assert body.endswith("# Planner guidance\n\n> Do it again, slowly.")


def test_advice_cannot_name_a_call(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    planner.replies = [advice("Do this:\n\n" + call_block(PlannedCall("act", {"order": "H-2", "note": 1})))]
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work()
    assert desk.order("H-2").revision == 1


def test_attempt_after_advice_may_pass(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    """Meanwhile the cause of the failed check was fixed."""
    desk = failing(tenant, tmp_path, script="print('{}')", check=NOTED)
    item = paused(desk, approver)
    save_record(tenant, "orders", "H-1", subject="C-1", total=120, note=50)
    desk.work()
    ended = desk.item(item.pk)
    assert ended.status == WorkItemStatus.DONE
    assert ended.attempts_made == 4


def test_advice_is_paid_by_the_plan_and_not_by_the_item(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    desk.work(Queue.PLANNER)
    plan_used, used = course(desk, item).used, desk.item(item.pk).used
    assert plan_used.planner_calls == 1
    assert plan_used.tokens > 0
    assert plan_used.cost_usd > 0
    assert used.planner_calls == 0
    assert used.tokens == 0
    assert used.cost_usd == Decimal(0)


def test_advice_that_does_not_come_in_time_lets_the_retries_go_on(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    with time_machine.travel(now().timestamp() + 91, tick=True):
        end_waits(tenant)
    assert course(desk, item).waiting_for == ""
    assert outcomes(desk, "guidance_given") == ["timeout"]
    assert [message.state for message in messages(desk, "execution_request")] == ["acked", "queued"]


def test_advice_is_waited_for_a_minute_and_a_half(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    with time_machine.travel(now().timestamp() + 80, tick=True):
        end_waits(tenant)
    assert course(desk, item).waiting_for == Waiting.GUIDANCE


def test_advice_that_comes_late_changes_nothing(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    desk.work(Queue.PLANNER)
    with time_machine.travel(now().timestamp() + 91, tick=True):
        end_waits(tenant)
    desk.work(Queue.RUNTIME)
    assert course(desk, item).guidance == ""
    assert outcomes(desk, "guidance_given") == ["timeout", "late"]


def test_question_that_is_answered_late_asks_no_model(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    with time_machine.travel(now().timestamp() + 91, tick=True):
        end_waits(tenant)
    desk.work(Queue.PLANNER)
    assert planner.requests == []
    assert outcomes(desk, "guidance_given") == ["timeout", "late"]


def test_advice_delivered_twice_resumes_once(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.PLANNER, Queue.RUNTIME)
    with tenant_scope(tenant):
        QueueMessage.objects.filter(kind="planner_guidance").update(state="queued", finished_at=None)
    desk.work(Queue.RUNTIME)
    assert len(messages(desk, "execution_request")) == 2


def test_planner_that_nobody_pays_is_no_advice(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    with tenant_scope(tenant):
        Budget.objects.create(period="day", limit_usd=0)
    desk.work(Queue.PLANNER)
    assert planner.requests == []
    assert outcomes(desk, "guidance_given") == ["in_time"]
    assert [message.state for message in messages(desk, "execution_request")] == ["acked", "queued"]


def test_planner_is_asked_no_more_than_the_plan_allows(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    """Attempts 3 and 4 get advice; the third planner call is for another plan, and there is no fourth."""
    desk = failing(tenant, tmp_path)
    item = desk.approved(approver)
    desk.work()
    found = (len(messages(desk, "consult_planner")), len(messages(desk, "replan_request")))
    assert found == (2, 1)
    assert course(desk, item).used.planner_calls == 3


@override_settings(GUIDANCE_SECONDS=0)
def test_sweep_and_answer_together_resume_once(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.PLANNER)
    race(lambda: end_waits(tenant), lambda: end_waits(tenant), lambda: desk.work(Queue.RUNTIME))
    assert len(messages(desk, "execution_request")) == 2
