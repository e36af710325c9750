"""Transitions of work items: one table, enforced by the services and by the database."""

from __future__ import annotations

from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from apps.audit.models import AuditEntry
from apps.work import rules
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from apps.work.services.items import create_item, move
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.work import Desk

STATUSES, TYPES = list(WorkItemStatus), list(WorkItemType)


def make(desk: Desk, kind: str) -> WorkItem:
    """A pending item that carries an approval, so that only the transitions restrict it."""
    spec = WorkItemSpec(id=str(uuid4()), type=WorkItemType(kind), title="T", body="B")
    with tenant_scope(desk.tenant):
        item = create_item(spec, deployment_id=None, session_id=None, trace_id="t")
        token = WorkItem.objects.get(pk=desk.goal_id).approval_token
        WorkItem.objects.filter(pk=item.pk).update(approval_token=token)
        item.approval_token = token
    return item


@pytest.fixture
def allowed(desk: Desk, owner: Any) -> Desk:
    desk.allow_standing(owner)
    return desk


@pytest.mark.parametrize("kind", [WorkItemType.TASK, WorkItemType.PROJECT])
@pytest.mark.parametrize("final", sorted(rules.FINAL))
def test_finished_item_never_moves(kind: WorkItemType, final: WorkItemStatus) -> None:
    assert not any(rules.may_move(kind, final, onward) for onward in STATUSES)


@pytest.mark.parametrize("kind", TYPES)
def test_every_status_has_a_line_in_the_table(kind: WorkItemType) -> None:
    assert set(rules.TRANSITIONS[kind]) == set(STATUSES)


@pytest.mark.parametrize("onward", [WorkItemStatus.DONE, WorkItemStatus.RUNNING, WorkItemStatus.STUCK])
@pytest.mark.parametrize("old", STATUSES)
def test_goal_is_never_done(old: WorkItemStatus, onward: WorkItemStatus) -> None:
    assert not rules.may_move(WorkItemType.GOAL, old, onward)


@given(st.sampled_from([WorkItemType.TASK, WorkItemType.PROJECT]), st.lists(st.sampled_from(STATUSES), max_size=12))
def test_path_to_done_always_goes_through_running(kind: WorkItemType, wishes: list[WorkItemStatus]) -> None:
    path = [WorkItemStatus.PENDING]
    for wish in wishes:
        path += [wish] if rules.may_move(kind, path[-1], wish) else []
    assert WorkItemStatus.DONE not in path or WorkItemStatus.RUNNING in path[: path.index(WorkItemStatus.DONE)]


def test_database_and_table_agree_on_every_move(allowed: Desk) -> None:
    """Writers that bypass the services have exactly the same transitions."""
    wrong = []
    for kind, old, new in product(TYPES, STATUSES, STATUSES):
        item = make(allowed, kind)
        if _force(allowed, item, old) and _database_lets(allowed, item, new) != (
            old == new or rules.may_move(kind, old, new)
        ):
            wrong.append((kind, old, new))
    assert wrong == []


def _force(desk: Desk, item: WorkItem, old: WorkItemStatus) -> bool:
    """Bring the row to `old` through allowed transitions; False if that is not possible."""
    path = _path(WorkItemType(item.type), old)
    with tenant_scope(desk.tenant):
        for step in path or ():
            WorkItem.objects.filter(pk=item.pk).update(status=step)
    return path is not None


def _path(kind: WorkItemType, goal: WorkItemStatus) -> list[WorkItemStatus] | None:
    paths: list[list[WorkItemStatus]] = [[WorkItemStatus.PENDING]]
    seen = {WorkItemStatus.PENDING}
    while paths:
        path = paths.pop(0)
        if path[-1] == goal:
            return path[1:]
        for onward in sorted(rules.TRANSITIONS[kind][path[-1]] - seen):
            seen.add(onward)
            paths.append([*path, onward])
    return None


def _database_lets(desk: Desk, item: WorkItem, new: WorkItemStatus) -> bool:
    with tenant_scope(desk.tenant):
        try:
            with transaction.atomic():
                return bool(WorkItem.objects.filter(pk=item.pk).update(status=new))
        except IntegrityError:
            return False


def test_item_that_begins_anywhere_but_pending_is_refused(desk: Desk) -> None:
    item = make(desk, WorkItemType.TASK)
    with pytest.raises(IntegrityError), tenant_scope(desk.tenant):
        WorkItem.objects.create(
            id="00000000-0000-0000-0000-000000000001", type="task", title="T", plan="{}", plan_hash="0" * 64,
            trace_id="t", status="done", approval_token=item.approval_token, created_at=item.created_at,
            updated_at=item.created_at,
        )  # fmt: skip


def test_item_that_changes_its_type_is_refused(desk: Desk) -> None:
    """A task that became a goal would follow the goal's transitions."""
    item = make(desk, WorkItemType.TASK)
    with pytest.raises(IntegrityError), tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(type="goal")


class Moves(RuleBasedStateMachine):
    """Whatever is asked of the service in any order: the row follows the table, and each move is audited."""

    desk: Desk

    def __init__(self) -> None:
        super().__init__()
        self.item: WorkItem | None = None
        self.status = WorkItemStatus.PENDING
        self.moves = 0

    @rule(kind=st.sampled_from(TYPES))
    @precondition(lambda self: self.item is None)
    def begin(self, kind: WorkItemType) -> None:
        self.item = make(self.desk, kind)

    @rule(wish=st.sampled_from(STATUSES))
    @precondition(lambda self: self.item is not None)
    def ask(self, wish: WorkItemStatus) -> None:
        assert self.item is not None
        may = rules.may_move(WorkItemType(self.item.type), self.status, wish)
        assert self._moved(self.item, wish) is may
        if may:
            self.status, self.moves = wish, self.moves + 1

    @rule(wish=st.sampled_from(STATUSES))
    @precondition(lambda self: self.item is not None)
    def ask_with_old_news(self, wish: WorkItemStatus) -> None:
        """A caller that read the row before it moved changes nothing."""
        assert self.item is not None
        with tenant_scope(self.desk.tenant):
            stale = WorkItem.objects.get(pk=self.item.pk)
        stale.status = next(status for status in STATUSES if status != self.status)
        assert self._moved(stale, wish) is False

    def _moved(self, item: WorkItem, wish: WorkItemStatus) -> bool:
        try:
            with tenant_scope(self.desk.tenant):
                move(item, wish)
        except SilasError:
            return False
        return True

    @invariant()
    def the_row_and_the_record_say_the_same(self) -> None:
        if self.item is None:
            return
        with tenant_scope(self.desk.tenant):
            row = WorkItem.objects.get(pk=self.item.pk)
            told = AuditEntry.objects.filter(event="work_moved", subject=f"work:{self.item.pk}").count()
        assert row.status == self.status
        assert told == self.moves


def test_moves_in_any_order_keep_to_the_table(allowed: Desk) -> None:
    checks = settings(max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(type("MovesHere", (Moves,), {"desk": allowed}), settings=checks)
