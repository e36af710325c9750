"""A desk whose tool can be undone, and things that its goal has found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.approvals.cards.schemas import AnswerDetails
from apps.approvals.cards.services import answer_card
from apps.approvals.models import Card
from apps.approvals.queries import face_hash
from apps.bus.enums import Queue
from apps.work.models import Batch, WorkItem
from apps.work.services import candidates
from apps.work.services.candidates import Candidate, RoutingResult
from kernel.tenancy import tenant_scope
from tests.factories.skills import SAY_OK, acting_tool, install, make_folder, read_tool, save_record
from tests.factories.work import ARGS, NOTE, NOTED, Desk, adopt

ACT = NOTE.replace('print(json.dumps({"say": "noted"}))', 'print(json.dumps({"before": row["data"].get("note", 0)}))')
UNACT = """
import json
call = json.load(open("call.json"))
row = next(r for r in json.load(open("/sandbox/records/orders.json")) if r["key"] == call["args"]["order"])
if row["data"].get("note") != call["args"]["instead_of"]:
    print(json.dumps({"refused": "Somebody changed it since."}))
else:
    change = {"book": "orders", "key": row["key"], "revision": row["revision"], "set": {"note": call["args"]["note"]}}
    json.dump([change], open("/sandbox/out/changes.json", "w"))
    print(json.dumps({"say": "put back"}))
"""
UNDONE = NOTED.replace('"act"', '"unact"')
UNDO = {"tool": "unact", "args": {"order": "$order", "note": "$answer.before", "instead_of": "$note"}}
UNARGS = {**ARGS, "properties": {**ARGS["properties"], "instead_of": {"type": "number"}}}


def undoable_desk(tenant: Any, folder: Path, *, search: str = SAY_OK, **tool: Any) -> Desk:
    """A desk that notes numbers on orders and can restore the number before."""
    act = acting_tool(**{"args": ARGS, "undo": UNDO, **tool})
    check = {"name": "undone", "run": "python3 /sandbox/skill/checks/undone.py", "expect": {"equals": "done"}}
    unact = acting_tool(name="unact", script="scripts/unact.py", args=UNARGS, reversible=False, verify=[check])
    files = {
        "scripts/act.py": ACT,
        "scripts/look.py": search,
        "scripts/unact.py": UNACT,
        "checks/done.py": NOTED,
        "checks/undone.py": UNDONE,
    }
    install(tenant, make_folder(folder, tools=[read_tool(), act, unact], files=files))
    for number in range(1, 13):
        save_record(tenant, "orders", f"H-{number}", subject=f"C-{number % 3}", total=100)
    return adopt(tenant)


def found(number: int, *, confidence: float | None = 0.95, **fields: Any) -> Candidate:
    """A candidate that notes on the order of this number."""
    args = {"order": f"H-{number}", "note": 10 + number}
    return Candidate(tool="act", args=args, subject=f"C-{number % 3}", confidence=confidence, **fields)


def route(desk: Desk, *things: Candidate) -> RoutingResult:
    with tenant_scope(desk.tenant):
        return candidates.route(WorkItem.objects.get(pk=desk.goal_id), things, trace_id="trace")


def card_of(desk: Desk, subject_id: Any) -> Card:
    with tenant_scope(desk.tenant):
        card: Card = Card.objects.filter(subject_id=subject_id).latest("created_at")
        return card


def answer(desk: Desk, card: Card, user: Any, choice: str, **words: Any) -> None:
    with tenant_scope(desk.tenant):
        answer_card(card.pk, user=user, choice=choice, face=face_hash(card), details=AnswerDetails(**words))


def again(desk: Desk, batch: Batch) -> Batch:
    with tenant_scope(desk.tenant):
        fresh: Batch = Batch.objects.get(pk=batch.pk)
        return fresh


def items(desk: Desk, batch: Batch) -> list[WorkItem]:
    with tenant_scope(desk.tenant):
        return [line.work_item for line in batch.items.select_related("work_item").order_by("position")]


def carry_out(desk: Desk) -> None:
    """Carry out everything that is queued for workers, then for the trusted worker."""
    desk.work()
    desk.work(Queue.TRUSTED)


def notes(desk: Desk, *numbers: int) -> list[Any]:
    return [desk.order(f"H-{number}").data.get("note") for number in numbers]
