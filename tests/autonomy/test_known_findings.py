"""A finding that an earlier run of the task reported is not reported again until it changes (spec 003)."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.autonomy.models import Finding, Precedent, Task
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import House

COATS = "# Coats\n\nYou can return a coat within 30 days of delivery.\n"
SHOP = "# Shop\n\nYou can return a coat within 14 days of delivery.\n"


@pytest.fixture
def reported(house: House, tmp_path: Path) -> House:
    """A company whose task has reported the contradiction between two documents once."""
    house.know(tmp_path, coats=COATS, shop=SHOP)
    house.through(house.task(playbook="contradictions"))
    return house


def task_of(house: House, finding: Finding) -> Task:
    with tenant_scope(house.tenant):
        task: Task = Task.objects.get(pk=finding.task_id)
    return task


def test_known_contradiction_is_counted_and_not_reported_again(reported: House) -> None:
    (finding,) = reported.findings()
    session = reported.through(task_of(reported, finding))
    assert len(reported.findings()) == 1
    assert "0 contradict other documents. 1 more, reported before, still do." in session.output


def test_precedent_counts_a_known_contradiction_once(reported: House) -> None:
    reported.through(task_of(reported, reported.findings()[0]))
    with tenant_scope(reported.tenant):
        assert [row.count for row in Precedent.objects.all()] == [1]


def test_changed_figure_is_a_new_finding(reported: House, tmp_path: Path) -> None:
    task = task_of(reported, reported.findings()[0])
    reported.know(tmp_path, coats=COATS, shop=SHOP.replace("14", "7"))
    reported.through(task)
    assert len({finding.key for finding in reported.findings()}) == 2


def test_another_task_reports_it_for_itself(reported: House) -> None:
    reported.through(reported.task(name="second", playbook="contradictions"))
    assert len(reported.findings()) == 2


def test_quarantined_finding_hides_nothing(reported: House) -> None:
    task = task_of(reported, reported.findings()[0])
    with tenant_scope(reported.tenant):
        Finding.objects.update(quarantined_at=now())
    session = reported.through(task)
    assert "1 contradict other documents." in session.output
