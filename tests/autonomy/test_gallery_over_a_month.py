"""Each of the ready automations over the demo's month: what exactly it finds, and that it finds it once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.autonomy.enums import SessionStatus
from apps.autonomy.models import AutonomousSession, Finding, Task
from kernel.tenancy import tenant_scope
from tests.factories.months import MonthHouse, make_month


@pytest.fixture
def month(tenant: Any, tmp_path: Path) -> MonthHouse:
    return make_month(tenant, tmp_path)


def run(house: MonthHouse, playbook: str) -> tuple[Task, AutonomousSession]:
    task = house.task(name=playbook, playbook=playbook, prompt="", limits={"calls": 60}, route={"kind": "notify"})
    session = house.through(task)
    assert session.status == SessionStatus.COMPLETED, (session.status, session.error_code)
    return task, session


def findings_of(house: MonthHouse, task: Task) -> dict[str, Finding]:
    return {finding.title: finding for finding in house.findings() if finding.task_id == task.pk}


def code(house: MonthHouse, name: str, day: int) -> str:
    return house.talk(name, day).hex[:4].upper()


def test_unhappy_conversations_with_their_reasons(month: MonthHouse) -> None:
    task, session = run(month, "unhappy")
    titles = findings_of(month, task)
    shade = f"Unhappy conversation {code(month, 'broken-shade-again', 2)}: rated 1 of 5; waited 9 hours for a person; "
    assert f"{shade}asked for a person; labels: damaged" in titles
    late = f"Unhappy conversation {code(month, 'late-parcel', 9)}: rated 1 of 5; 2 answers failed; labels: order"
    assert titles[late].severity == "critical"
    assert len(titles) == 10
    assert session.output.startswith("10 unhappy conversations.")


def test_promises_that_were_not_kept(month: MonthHouse) -> None:
    task, _ = run(month, "promises")
    titles = findings_of(month, task)
    carrier, refund = code(month, "promise-carrier", 6), code(month, "promise-refund", 5)
    assert sorted(title[:29] for title in titles) == sorted(
        f"Promise not kept in {each}, due" for each in (carrier, refund)
    )


def test_customer_who_waits_a_day_and_not_the_one_who_waits_a_little(month: MonthHouse) -> None:
    task, _ = run(month, "sla_risk")
    (finding,) = findings_of(month, task).values()
    assert finding.title == f"Customer in {code(month, 'waits-a-day', 1)} has waited 26 hours for a person"
    assert finding.severity == "critical"


def test_refunds_above_the_price_twice_and_too_often(month: MonthHouse) -> None:
    task, _ = run(month, "refund_anomalies")
    titles = findings_of(month, task)
    assert sorted(titles) == [
        "Customer K-2004: refunds for 4 orders in 90 days, 115.50 together",
        "Order H-90402: refunds of 92.00 for a price of 29.00",
        "Order H-90411: 49.00 was refunded 2 times",
    ]
    assert "RF-0000000412" in titles["Order H-90411: 49.00 was refunded 2 times"].content


def test_outdated_documents(month: MonthHouse) -> None:
    task, _ = run(month, "stale_documents")
    titles = findings_of(month, task)
    assert "Christmas at Harbor mentions 2025-12-24, which has passed" in titles
    assert len(titles) == 2


def test_week_in_words(month: MonthHouse) -> None:
    task, session = run(month, "weekly_insights")
    assert "conversations from" in session.output
    assert "were handed over to a person" in session.output
    assert "The question asked most without an answer: Do you sharpen old knives?" in session.output
    assert len(findings_of(month, task)) == 1


def test_unanswered_questions_become_drafts(month: MonthHouse) -> None:
    run(month, "unanswered")
    assert "Answer to: Do you sharpen old knives?" in {proposal.title for proposal in month.proposals()}


def test_contradiction_between_the_news_and_the_delivery_page(month: MonthHouse) -> None:
    task, _ = run(month, "contradictions")
    titles = findings_of(month, task)
    assert any("£9.50" in title and "£8.50" in title for title in titles)


def test_memory_review_of_a_company_without_old_memories(month: MonthHouse) -> None:
    _, session = run(month, "memory_review")
    assert session.output == "All 0 of the company's memories are current, and no proposal waits."


def test_translation_says_that_it_needs_a_model(month: MonthHouse) -> None:
    task, session = run(month, "translation")
    assert session.output.startswith("This task needs a model.")
    assert list(findings_of(month, task)) == ["This task needs a model"]


@pytest.mark.parametrize("playbook", ["unhappy", "promises", "sla_risk", "refund_anomalies", "stale_documents"])
def test_second_run_reports_nothing_again_and_is_short(month: MonthHouse, playbook: str) -> None:
    task, _ = run(month, playbook)
    before = len(findings_of(month, task))
    second = month.through(task)
    assert len(findings_of(month, task)) == before
    with tenant_scope(month.tenant):
        assert not Finding.objects.filter(session=second).exists()
    assert second.receipt is not None
