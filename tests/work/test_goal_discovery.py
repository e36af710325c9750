"""A goal searches for things to do: it sees all of the company's records, changes nothing, and asks (spec 5.1.5,
5.9)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.bus.enums import Kind, Queue
from apps.work import services
from apps.work.models import Batch, WorkItem
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.batches import items, notes, undoable_desk
from tests.factories.bus import let_waits_pass
from tests.factories.work import Desk
from tests.work.drained import drain_as_a_worker

SEARCH = """
import json
rows = json.load(open("/sandbox/records/orders.json"))
wanted = [row for row in rows if row["subject"] and "note" not in row["data"]][:3]
found = [
    {"tool": "act", "args": {"order": row["key"], "note": 5}, "subject": row["subject"], "confidence": 0.9}
    for row in wanted
]
print(json.dumps({"found": [*found, {"tool": "act"}, "nonsense"]}))
"""
GOAL = """---
id: goal
type: goal
title: Note what is missing
schedule: "*/5 * * * *"
skills: [test-desk]
verify:
  - {name: always, run: python3 -V, expect: {exit_code: 0}}
---
Find orders without a note.

```call
{"args":{},"tool":"look"}
```
"""


def look(desk: Desk, plan: str = GOAL) -> None:
    """Adopt the goal, and run one cycle."""
    with tenant_scope(desk.tenant):
        goal = services.adopt_goal(plan, deployment_id=desk.deployment.pk, requested_by="user:test")
        WorkItem.objects.filter(pk=goal.pk).update(due_at=now() - timedelta(seconds=1))
    let_waits_pass(desk.tenant, kind=Kind.GOAL_CYCLE)
    drain_as_a_worker(desk.tenant)
    desk.work(Queue.TRUSTED)


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path, search=SEARCH)


def test_what_a_goal_finds_is_put_before_a_person_as_a_batch(desk: Desk) -> None:
    look(desk)
    with tenant_scope(desk.tenant):
        batch = Batch.objects.get()
    assert [item.subject for item in items(desk, batch)] == ["C-1", "C-1", "C-2"]
    assert notes(desk, 1, 2, 3) == [None] * 3


def test_looking_again_asks_about_nothing_twice(desk: Desk) -> None:
    look(desk)
    look(desk)
    with tenant_scope(desk.tenant):
        numbers = [item.spec.calls[0].args["order"] for batch in Batch.objects.all() for item in items(desk, batch)]
    assert len(numbers) == len(set(numbers))


def test_goal_whose_own_calls_would_act_is_refused(desk: Desk) -> None:
    acts = GOAL.replace('{"args":{},"tool":"look"}', '{"args":{"note":1,"order":"H-1"},"tool":"act"}')
    with pytest.raises(SilasError, match="may only read"):
        look(desk, acts)


def test_search_that_answers_nonsense_finds_nothing(tenant: Any, tmp_path: Path) -> None:
    desk = undoable_desk(tenant, tmp_path, search='print(\'{"found": {"tool": "act"}}\')')
    look(desk)
    with tenant_scope(tenant):
        assert Card.objects.count() == 0
