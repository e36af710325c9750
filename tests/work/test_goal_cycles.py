"""Scheduled goals: checked, healthy or repaired within what was approved, parked without budget (spec 5.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card, TokenUse
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind, Queue
from apps.console.pages.review.origins import origins_of
from apps.skills.models import Record
from apps.work import services
from apps.work.budgets import Budget
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import GoalCycle, WorkItem
from apps.work.services import goal_cycles
from apps.work.services.approval_requests import BY_RULES
from kernel import schedules
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.skills import acting_tool, install, make_folder, save_record
from tests.factories.tenants import make_deployment
from tests.factories.work import Hands

# The whole house's feed has to be fresh; the repair leaves a file, which is all that it may do.
FRESH = """
import json
feeds = {row["key"]: row["data"] for row in json.load(open("/sandbox/records/feeds.json"))}
print("fresh" if all(feed["age"] < 60 for feed in feeds.values()) else "stale")
"""
REFRESH = """
import json, pathlib
call = json.load(open("call.json"))
pathlib.Path("/sandbox/out/asked.txt").write_text(call["args"]["feed"])
print(json.dumps({"say": "asked"}))
"""
GOAL = """---
id: goal
type: goal
title: Keep the feeds fresh
schedule: "*/5 * * * *"
skills: [test-desk]
verify:
  - {name: feeds_fresh, run: python3 /sandbox/skill/checks/fresh.py, expect: {equals: fresh}}
on_failure: spawn_task
failure_context: |
  These checks failed: $failed_checks

  ```call
  {"tool": "refresh", "args": {"feed": "stock"}}
  ```
---
Look after the feeds.
"""


class House:
    """A tenant with a scheduled goal, and the verbs that its tests use."""

    def __init__(self, tenant: Any, folder: Path, plan: str = GOAL) -> None:
        self.tenant = tenant
        done = {"name": "asked", "run": "python3 /sandbox/skill/checks/done.py", "expect": {"equals": "done"}}
        tool = acting_tool(
            name="refresh",
            intent="Refresh the feed {feed}",
            records=["feeds"],
            writes=[],
            verify=[done],
            args={"type": "object", "properties": {"feed": {"type": "string"}}, "required": ["feed"]},
        )
        files = {"scripts/act.py": REFRESH, "checks/fresh.py": FRESH, "checks/done.py": "print('done')"}
        install(tenant, make_folder(folder, tools=[tool], files=files))
        self.feed(10)
        deployment = make_deployment(tenant)
        with tenant_scope(tenant):
            self.goal_id = services.adopt_goal(plan, deployment_id=deployment.pk, requested_by="user:test").pk

    def feed(self, age: int) -> None:
        save_record(self.tenant, "feeds", "stock", subject="", age=age)

    def goal(self) -> WorkItem:
        with tenant_scope(self.tenant):
            goal: WorkItem = WorkItem.objects.get(pk=self.goal_id)
            return goal

    def look(self) -> str:
        """One cycle, to its end."""
        self.fall_due()
        self.work()
        with tenant_scope(self.tenant):
            return str(GoalCycle.objects.filter(goal_id=self.goal_id).latest("ran_at").outcome)

    def fall_due(self, due_at: datetime | None = None) -> None:
        with tenant_scope(self.tenant):
            WorkItem.objects.filter(pk=self.goal_id).update(due_at=due_at or now() - timedelta(seconds=1))
        let_waits_pass(self.tenant, kind=Kind.GOAL_CYCLE)

    def work(self) -> None:
        desk = Hands(self.tenant)
        desk.work()
        desk.work(Queue.TRUSTED)

    def allow(self, user: Any, uses: int = 3) -> None:
        with tenant_scope(self.tenant):
            goal = WorkItem.objects.get(pk=self.goal_id)
            card = services.request_standing_approval(goal, uses=uses, days=1, rationale="It is small.")
            decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)

    def repairs(self) -> list[WorkItem]:
        with tenant_scope(self.tenant):
            return list(WorkItem.objects.filter(parent=self.goal_id).order_by("created_at"))

    def count(self, model: Any, **fields: Any) -> int:
        with tenant_scope(self.tenant):
            return int(model.objects.filter(**fields).count())


@pytest.fixture
def house(tenant: Any, tmp_path: Path) -> House:
    return House(tenant, tmp_path)


# --- looked at


def test_goal_whose_checks_pass_is_healthy(house: House) -> None:
    assert house.look() == "healthy"
    assert house.goal().status == WorkItemStatus.HEALTHY


def test_goal_is_looked_at_once_a_due_time(house: House) -> None:
    house.fall_due(now() - timedelta(hours=3))
    house.work()
    let_waits_pass(house.tenant, kind=Kind.GOAL_CYCLE)
    house.work()
    assert house.count(GoalCycle) == 1
    assert house.goal().due_at > now()


def test_look_that_a_dead_worker_had_begun_is_made_once(house: House) -> None:
    house.feed(90)
    house.fall_due()
    with tenant_scope(house.tenant):
        assert lease_any(Queue.WORK, consumer="doomed") is not None
    let_leases_run_out(house.tenant)
    house.work()
    assert house.count(GoalCycle) == 1
    assert len(house.repairs()) == 1


def test_goal_sees_every_row_of_its_books(house: House) -> None:
    """A customer's row counts as much as the company's own."""
    save_record(house.tenant, "feeds", "private", subject="C-1", age=90)
    assert house.look() != "healthy"


def test_goal_that_only_reports_starts_nothing(tenant: Any, tmp_path: Path) -> None:
    house = House(tenant, tmp_path, GOAL.replace("on_failure: spawn_task\n", ""))
    house.feed(90)
    assert house.look() == "failed"
    assert house.goal().status == WorkItemStatus.FAILED
    assert house.repairs() == []


def test_cycle_is_on_record(house: House) -> None:
    house.look()
    assert house.count(AuditEntry, event="goal_checked") == 1


# --- repaired


def test_repair_without_a_standing_approval_is_put_before_a_person(house: House) -> None:
    house.feed(90)
    outcome = house.look()
    (item,) = house.repairs()
    assert outcome == "asked"
    assert item.status == "pending"
    assert house.count(Card, subject_id=item.pk) == 1


def test_card_of_a_repair_says_that_no_conversation_asked(house: House) -> None:
    house.feed(90)
    house.look()
    (item,) = house.repairs()
    with tenant_scope(house.tenant):
        card = Card.objects.get(subject_id=item.pk)
        origins = origins_of(card)
    assert card.rationale == BY_RULES
    assert origins is not None
    assert origins.asked_by == "This chatbot's own rules"
    assert {line.origin for line in origins.lines} == {"Set in this chatbot's own rules"}


def test_repair_under_the_standing_approval_runs_at_once(house: House, owner: Any) -> None:
    house.allow(owner)
    house.feed(90)
    assert house.look() == "spawned"
    assert house.repairs()[0].attempts_made > 0


def test_repair_spends_a_use_for_exactly_its_plan(house: House, owner: Any) -> None:
    house.allow(owner)
    house.feed(90)
    house.look()
    with tenant_scope(house.tenant):
        assert list(TokenUse.objects.values_list("bound_hash", flat=True)) == [house.repairs()[0].plan_hash]


def test_repair_when_the_standing_approval_is_used_up_is_put_before_a_person(house: House, owner: Any) -> None:
    house.allow(owner, uses=1)
    house.feed(90)
    first = house.look()
    spent(house, 0)
    assert first == "spawned"
    assert house.look() == "asked"


def test_repair_of_a_goal_that_was_changed_since_is_put_before_a_person(house: House, owner: Any) -> None:
    house.allow(owner)
    with tenant_scope(house.tenant):
        plan = house.goal().plan.replace('\\"stock', '\\"all')
        WorkItem.objects.filter(pk=house.goal_id).update(plan=plan)
    house.feed(90)
    assert house.look() == "asked"


def test_repair_says_which_checks_failed_and_not_what_they_printed(house: House) -> None:
    house.feed(90)
    house.look()
    body = house.repairs()[0].spec.body
    assert "feeds_fresh" in body
    assert "stale" not in body
    assert body.count("```call") == 1


def test_no_second_repair_begins_while_one_is_under_way(house: House) -> None:
    house.feed(90)
    assert [house.look(), house.look()] == ["asked", "under_way"]
    assert len(house.repairs()) == 1


def test_goal_is_healthy_again_after_its_feed_is(house: House) -> None:
    house.feed(90)
    house.look()
    house.feed(10)
    assert house.look() == "healthy"
    assert house.goal().status == WorkItemStatus.HEALTHY


def test_repair_cannot_change_a_row(house: House, owner: Any) -> None:
    """A repair has no customer, and without one no record can be changed."""
    house.allow(owner)
    house.feed(90)
    house.look()
    assert house.count(Record, revision__gt=2) == 0


# --- parked


def spent(house: House, attempts: int) -> None:
    used = {**house.goal().used.model_dump(mode="json"), "attempts": attempts}
    with tenant_scope(house.tenant):
        WorkItem.objects.filter(pk=house.goal_id).update(budget_used=used)


def test_what_repairs_use_counts_for_their_goal(house: House, owner: Any) -> None:
    house.allow(owner)
    house.feed(90)
    house.look()
    assert house.goal().used.attempts == house.repairs()[0].used.attempts > 0


@pytest.mark.parametrize(("used", "outcome"), [(Budget().max_attempts - 1, "asked"), (Budget().max_attempts, "parked")])
def test_goal_whose_budget_is_out_is_parked(house: House, used: int, outcome: str) -> None:
    house.feed(90)
    spent(house, used)
    assert house.look() == outcome


def test_parked_goal_is_not_looked_at(house: House) -> None:
    house.feed(90)
    spent(house, 99)
    house.look()
    house.fall_due()
    house.work()
    assert house.count(GoalCycle) == 1
    assert house.goal().reason == WorkReason.BUDGET


def test_parked_goal_goes_on_when_a_person_says_so(house: House, owner: Any) -> None:
    house.feed(90)
    spent(house, 99)
    house.look()
    with tenant_scope(house.tenant):
        goal_cycles.resume_goal(house.goal_id, user=owner)
    assert house.look() == "asked"


def test_viewer_resumes_nothing(house: House, viewer: Any) -> None:
    with pytest.raises(SilasError), tenant_scope(house.tenant):
        goal_cycles.resume_goal(house.goal_id, user=viewer)


def test_healthy_cycle_forgets_what_repairs_have_cost(house: House) -> None:
    house.feed(90)
    house.look()
    spent(house, 4)
    house.feed(10)
    house.look()
    assert house.goal().used.attempts == 0


# --- adopted


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('"*/5 * * * *"', "whenever", "bad_schedule"),
        ('"*/5 * * * *"', '"99 * * * *"', "bad_schedule"),
        ('"stock"', '"$feed"', "bad_template"),
        ('{"tool": "refresh", "args": {"feed": "stock"}}', '{"tool": "x", "args": {}, "more": 1}', "bad_call_block"),
    ],
)
def test_goal_that_could_not_be_looked_at_is_refused(
    tenant: Any, tmp_path: Path, old: str, new: str, code: str
) -> None:
    with pytest.raises(SilasError) as refused:
        House(tenant, tmp_path, GOAL.replace(old, new))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("schedule", "zone", "due"),
    [
        ("*/30 * * * *", "Europe/London", datetime(2026, 3, 29, 0, 30, tzinfo=UTC)),
        ("0 9 * * *", "Europe/London", datetime(2026, 3, 29, 8, 0, tzinfo=UTC)),
        ("0 9 * * *", "UTC", datetime(2026, 3, 29, 9, 0, tzinfo=UTC)),
        ("0 0 * * 1", "America/New_York", datetime(2026, 3, 30, 4, 0, tzinfo=UTC)),
    ],
)
def test_next_look_is_in_the_tenants_own_time(schedule: str, zone: str, due: datetime) -> None:
    assert schedules.next_due(schedule, after=datetime(2026, 3, 29, 0, 10, tzinfo=UTC), zone=zone) == due
