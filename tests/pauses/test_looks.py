"""What counts as a look where a gate asks about a call of work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals.enums import ApprovalScope
from apps.gates.services import save_gate
from apps.work.attempt_jobs import approved_passes
from apps.work.models import WorkItem
from kernel.tenancy import tenant_scope
from tests.factories.pauses import asking_gate
from tests.factories.work import Desk, make_desk, note


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


@pytest.mark.parametrize("counts", [False, True])
def test_standing_approval_counts_for_a_gate_that_asks_only_where_the_gate_says_so(
    desk: Desk, approver: Any, counts: bool
) -> None:
    config = {"standing_approval_counts": True} if counts else {}
    desk.allow_standing(approver)
    proposal = desk.propose(note(5))
    with tenant_scope(desk.tenant):
        save_gate(asking_gate("on_tool_call", config={"tools": ["act"], **config}), deployment_id=desk.deployment.pk)
    assert proposal.outcome == "dispatched"
    desk.work()
    assert desk.order().revision == (2 if counts else 1)


def test_approval_of_a_plan_counts_as_a_look_at_its_calls(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    gate = asking_gate("on_tool_call")
    with tenant_scope(desk.tenant):
        row = WorkItem.objects.select_related("approval_token").get(pk=item.pk)
        (given,) = approved_passes(row, [gate])
        assert row.approval_token is not None
        assert row.approval_token.scope == ApprovalScope.FULL_PLAN
    assert given.gates == frozenset({"look"})
