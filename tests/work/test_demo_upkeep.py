"""The demo's scheduled goals: found, reviewed together, carried out, verified, and undone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from apps.skills.models import Record
from apps.work import services
from apps.work.check_runs import run_goal_checks_now
from apps.work.models import Batch
from kernel.tenancy import tenant_scope
from silas_platform import demo
from tests.factories.batches import answer, card_of, carry_out, items
from tests.factories.skills import install
from tests.factories.tenants import make_deployment
from tests.factories.work import Desk


@dataclass(frozen=True)
class Upkeep:
    desk: Desk
    book: str

    def look(self) -> str:
        cycle = asyncio.run(run_goal_checks_now(self.desk.tenant.pk, self.desk.goal_id))
        return cycle.outcome if cycle else ""

    def batch(self) -> Batch:
        with tenant_scope(self.desk.tenant):
            found: Batch = Batch.objects.get(goal_ref=self.desk.goal_id)
            return found

    def rows(self) -> dict[str, Any]:
        with tenant_scope(self.desk.tenant):
            return dict(Record.objects.filter(book=self.book).values_list("key", "data"))

    def press(self, subject_id: Any, user: Any) -> None:
        answer(self.desk, card_of(self.desk, subject_id), user, "approve")
        carry_out(self.desk)


@pytest.fixture(
    params=[("meridian-insurance", "meridian-claims", "claims"), ("harbor-retail", "harbor-returns", "returns")],
    ids=["meridian", "harbor"],
)
def upkeep(tenant: Any, request: Any) -> Upkeep:
    folder, skill, book = request.param
    install(tenant, demo.SKILLS / skill)
    text = (demo.FOLDER / folder / "upkeep.md").read_text()
    with tenant_scope(tenant):
        demo.load_records(demo.FOLDER / folder)
        deployment = make_deployment(tenant)
        goal = services.adopt_goal(text, deployment_id=deployment.pk, requested_by="user:test")
    return Upkeep(Desk(tenant, deployment, goal.pk), book)


def test_look_asks_about_all_that_it_found_together(upkeep: Upkeep) -> None:
    outcome = upkeep.look()
    assert outcome == "failed"
    assert len(items(upkeep.desk, upkeep.batch())) == 3


def test_look_that_nobody_answered_does_not_ask_again(upkeep: Upkeep) -> None:
    upkeep.look()
    upkeep.look()
    assert len(items(upkeep.desk, upkeep.batch())) == 3


def test_look_after_the_approval_finds_nothing_wrong(upkeep: Upkeep, approver: Any) -> None:
    upkeep.look()
    upkeep.press(upkeep.batch().pk, approver)
    done = {item.status for item in items(upkeep.desk, upkeep.batch())}
    assert done == {"done"}
    assert upkeep.look() == "healthy"


def test_undo_of_the_batch_leaves_nothing_of_it(upkeep: Upkeep, approver: Any) -> None:
    before = upkeep.rows()
    upkeep.look()
    upkeep.press(upkeep.batch().pk, approver)
    with tenant_scope(upkeep.desk.tenant):
        undo = Batch.objects.get(undo_of=upkeep.batch().pk)
    changed = upkeep.rows()
    upkeep.press(undo.pk, approver)
    left = {key: {name: value for name, value in row.items() if value != "none"} for key, row in upkeep.rows().items()}
    assert changed != before
    assert left == before
