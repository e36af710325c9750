"""What a visitor reads of a request that waits: the values it changes, from what to what, and how long it takes.

A value of the company's records is shown only to the verified customer whose record it is, and passes the gates.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.approvals.cards import metrics
from apps.approvals.enums import CardKind
from apps.gates.schemas import GateSpec
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.skills import acting_tool, install, make_folder, read_tool, save_record
from tests.factories.work import ARGS, CAP, NOTE, NOTED, Desk, adopt, note

FACT = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}
NEW = [{"label": "note", "after": "50"}, {"label": "order", "after": "H-1"}]
OLD_AND_NEW = [{"label": "note", "after": "50", "before": "7"}, NEW[1]]


def make(tenant: Any, folder: Path, *, reads: list[str] | None = None, fact: dict[str, str] | None = None) -> Desk:
    """A desk whose tool replaces the note of an order; `reads`: the books of the tool that only reads."""
    look = read_tool(records=["orders"] if reads is None else reads)
    tools = [look, acting_tool(args=ARGS, facts=[fact or FACT])]
    files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
    install(tenant, make_folder(folder, tools=tools, files=files))
    save_record(tenant, "orders", "H-1", subject="C-1", note=7)
    save_record(tenant, "orders", "H-2", subject="C-2", note=8)
    save_record(tenant, "orders", "H-9", subject="", note=9)
    return adopt(tenant)


def told(desk: Desk, **fields: Any) -> dict[str, Any]:
    """The last status frame after a proposal."""
    proposal = desk.propose(**fields)
    assert proposal.work_item_id is not None, proposal
    return last_status(desk, proposal.work_item_id)


def last_status(desk: Desk, item_id: UUID) -> dict[str, Any]:
    with tenant_scope(desk.tenant):
        rows = ChronicleEntry.objects.filter(kind="status", payload__work_item_id=str(item_id))
        payload: dict[str, Any] = rows.latest("seq").payload
        return payload


def test_verified_customer_reads_from_what_to_what_their_record_changes(tenant: Any, tmp_path: Path) -> None:
    desk = make(tenant, tmp_path)
    assert told(desk)["changes"] == OLD_AND_NEW


def test_visitor_whose_level_ended_reads_the_new_values_only(tenant: Any, tmp_path: Path) -> None:
    desk = make(tenant, tmp_path)
    with tenant_scope(tenant):
        session_id, unknown = desk.conversation("C-1"), desk.conversation("")
        ChatSession.objects.filter(pk=session_id).update(level_expires_at=now() - timedelta(seconds=1))
    assert told(desk, session_id=session_id)["changes"] == NEW
    assert told(desk, session_id=unknown, subject="")["changes"] == NEW


@pytest.mark.parametrize("order", ["H-2", "H-9"])
def test_record_of_somebody_else_or_of_nobody_is_not_told(tenant: Any, tmp_path: Path, order: str) -> None:
    desk = make(tenant, tmp_path)
    with tenant_scope(tenant):
        proposal = desk.propose(note(50, order))
    assert proposal.work_item_id is not None
    assert last_status(desk, proposal.work_item_id)["changes"] == [NEW[0], {"label": "order", "after": order}]


def test_book_that_no_tool_of_the_level_reads_is_not_told(tenant: Any, tmp_path: Path) -> None:
    desk = make(tenant, tmp_path, reads=[])
    assert told(desk)["changes"] == NEW


def test_value_that_is_not_replaced_by_the_visitors_own_is_not_told(tenant: Any, tmp_path: Path) -> None:
    desk = make(tenant, tmp_path, fact={**FACT, "after": "about {note}"})
    assert told(desk)["changes"] == NEW


def test_record_that_a_gate_objects_to_is_left_out(tenant: Any, tmp_path: Path) -> None:
    desk = make(tenant, tmp_path)
    gate = GateSpec(name="secret", on="every_agent_response", type="regex", config={"pattern": r"\A(?![\s\S]*7)"})
    assert told(desk, gates=(CAP, gate))["changes"] == NEW


def test_later_customer_of_the_conversation_reads_nothing_of_it(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make(tenant, tmp_path)
    item = desk.waiting()
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=str(item.session_id)).update(customer="C-2", last_customer="C-2")
    desk.decide(item, approver)
    frame = last_status(desk, item.pk)
    assert frame["title"] == "An earlier request"
    assert not frame["changes"]


def test_usual_time_is_told_from_five_decisions_of_the_last_month_on(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    desk = make(tenant, tmp_path)
    for value in range(30, 35):
        item = desk.waiting(value)
        assert "usual_seconds" not in last_status(desk, item.pk)
        desk.decide(item, approver)
    item = desk.waiting(40)
    assert 0 <= last_status(desk, item.pk)["usual_seconds"] < 60
    desk.decide(item, approver)
    assert "usual_seconds" not in last_status(desk, item.pk)
    with tenant_scope(tenant):
        assert metrics.usual_wait_seconds(CardKind.PLAN, now()) is None
        assert metrics.usual_wait_seconds(CardKind.BATCH_REVIEW, now() - timedelta(days=30)) is None
