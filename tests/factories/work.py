"""A desk that can act: a deployment with an adopted goal, a skill that notes a number on an order, and plans for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card
from apps.approvals.tokens.payloads import plan_hash
from apps.bus.deliveries import deliver
from apps.bus.enums import Kind, Queue
from apps.gates.schemas import GateSpec
from apps.sessions.models import ChatSession
from apps.skills.models import Record
from apps.tenants.models import Deployment
from apps.work import services
from apps.work.models import WorkItem
from apps.work.provenance import trace_to
from apps.work.schemas import Proposal
from kernel.canonical import canonical_json
from kernel.clock import now
from kernel.provenance import Origin, Traced
from kernel.tenancy import in_scope, tenant_scope
from llm.calls import PlannedCall, call_block
from tests.factories.bus import carry_out_kinds, lease_any
from tests.factories.sessions import make_session
from tests.factories.skills import acting_tool, install, make_folder, read_tool, save_record
from tests.factories.tenants import make_deployment

NOTE = """
import json
call = json.load(open("call.json"))
row = next(r for r in json.load(open("/sandbox/records/orders.json")) if r["key"] == call["args"]["order"])
change = {"book": "orders", "key": row["key"], "revision": row["revision"], "set": {"note": call["args"]["note"]}}
json.dump([change], open("/sandbox/out/changes.json", "w"))
print(json.dumps({"say": "noted"}))
"""
NOTED = """
import json
calls = json.load(open("/sandbox/call/calls.json"))
rows = {row["key"]: row["data"] for row in json.load(open("/sandbox/records/orders.json"))}
good = all(rows[c["args"]["order"]].get("note") == c["args"]["note"] for c in calls if c["tool"] == "act")
print("done" if good else "not done")
"""
ARGS = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "note": {"type": "number", "minimum": 0}},
    "required": ["order", "note"],
}
TEMPLATE = "Note it.\n\n" + call_block(PlannedCall("act", {"note": "$note", "order": "$order"}))
CAP = GateSpec(
    name="cap",
    on="on_tool_call",
    type="numeric_range",
    extract="note",
    auto_approve={"min": 0, "max": 25},
    require_approval={"min": 25, "max": 100},
    block={"outside": (0, 100)},
    on_block="too_much",
    config={"tools": ["act"]},
)
GOAL = f"""---
id: goal
type: goal
title: Look after orders
schedule: always_on
skills: [test-desk]
access_levels:
  public: {{tools: [look]}}
  verified: {{tools: [look, act]}}
escalation:
  too_much: {{action: respond, message: Notes above 100 are not made here.}}
failure_context: |
{chr(10).join("  " + line for line in TEMPLATE.splitlines())}
---
Be kind.
"""


# Plans of which the customer typed every value, in the first message.
TYPED = trace_to(Traced(Origin.VISITOR, "seq:1"))
WORKERS_QUEUES = (Queue.EXECUTOR, Queue.PLANNER, Queue.RUNTIME, Queue.WORK)


def end_waits(tenant: Any) -> None:
    """End the overdue waits of work, as the worker that is woken for each does."""
    carry_out_kinds(tenant, Kind.WAIT_END)


@dataclass(frozen=True)
class Hands:
    """The handlers that do a tenant's work (the tenant, or its id)."""

    tenant: Any

    def item(self, item_id: UUID) -> WorkItem:
        with tenant_scope(self.tenant):
            item: WorkItem = WorkItem.objects.select_related("approval_token", "parent").get(pk=item_id)
            return item

    def work(self, *queues: Queue, consumer: str = "test", lease_seconds: float = 120.0) -> None:
        """Carry out what workers owe this tenant, until nothing may be delivered any more."""
        asyncio.run(self._drain(queues or WORKERS_QUEUES, consumer, lease_seconds))

    async def _drain(self, queues: tuple[Queue, ...], consumer: str, seconds: float) -> None:
        tenant_id, found = getattr(self.tenant, "pk", self.tenant), True
        while found:
            found = False
            for queue in queues:
                lease = await in_scope(tenant_id, lease_any, queue, consumer=consumer, seconds=seconds)
                if lease is not None:
                    found = True
                    await deliver(tenant_id, lease, seconds=seconds)


@dataclass(frozen=True)
class Desk(Hands):
    """Everything a test of work needs, and the verbs it uses often."""

    deployment: Deployment
    goal_id: UUID
    customer: str = "C-1"

    def propose(self, *calls: PlannedCall, **fields: Any) -> Proposal:
        with tenant_scope(self.tenant):
            return services.propose(
                **{
                    "deployment": self.deployment,
                    "session_id": self.conversation(str(fields.get("subject", self.customer))),
                    "plan_markdown": plan(*(calls or (note(),))),
                    "access": frozenset({"look", "act"}),
                    "subject": self.customer,
                    "gates": (CAP,),
                    "trace_id": "trace",
                    "tracing": TYPED,
                    **fields,
                }
            )

    def conversation(self, customer: str) -> UUID:
        """A conversation of this customer, who is verified in it."""
        session = make_session(self.deployment)
        raised = {"customer": customer, "last_customer": customer, "level": "verified"} if customer else {}
        ChatSession.objects.filter(pk=session.pk).update(**raised) if raised else None
        return session.pk

    def waiting(self, value: float = 50) -> WorkItem:
        """An item that waits for a person."""
        proposal = self.propose(note(value))
        assert proposal.work_item_id is not None
        return self.item(proposal.work_item_id)

    def approved(self, user: Any, value: float = 50) -> WorkItem:
        item = self.waiting(value)
        self.decide(item, user)
        return self.item(item.pk)

    def decide(self, item: WorkItem, user: Any, verdict: ApprovalVerdict = ApprovalVerdict.APPROVED) -> None:
        with tenant_scope(self.tenant):
            conditions = {"not_before": "Monday"} if verdict == ApprovalVerdict.CONDITIONAL else {}
            decide_card(self.card(item).pk, user=user, verdict=verdict, conditions=conditions)

    def card(self, item: WorkItem) -> Card:
        with tenant_scope(self.tenant):
            card: Card = Card.objects.get(subject_id=item.pk)
            return card

    def order(self, key: str = "H-1") -> Record:
        with tenant_scope(self.tenant):
            row: Record = Record.objects.get(book="orders", key=key)
            return row

    def allow_standing(self, user: Any, *, uses: int = 3) -> None:
        """Let the goal's template run without asking."""
        with tenant_scope(self.tenant):
            goal = WorkItem.objects.get(pk=self.goal_id)
            card = services.request_standing_approval(goal, uses=uses, days=30, rationale="It is small.")
            decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)


def make_desk(tenant: Any, folder: Path, *, script: str = NOTE, check: str = NOTED, **tool: Any) -> Desk:
    files = {"scripts/act.py": script, "checks/done.py": check}
    install(tenant, make_folder(folder, tools=[read_tool(), acting_tool(args=ARGS, **tool)], files=files))
    save_record(tenant, "orders", "H-1", subject="C-1", total=120)
    save_record(tenant, "orders", "H-2", subject="C-2", total=80)
    save_record(tenant, "orders", "H-3", subject="C-1", total=30)
    return adopt(tenant)


def adopt(tenant: Any, plan: str = GOAL) -> Desk:
    """A deployment whose conversations this goal governs; the skill is installed already."""
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        goal = services.adopt_goal(plan, deployment_id=deployment.pk, requested_by="user:test")
        deployment.active_goal_id = goal.pk
        deployment.save(update_fields=["active_goal_id"])
    return Desk(tenant, deployment, goal.pk)


def put_rows(tenant: Any, *plans: dict[str, Any]) -> None:
    """Rows of plans that no service made; what is there already stays."""
    with tenant_scope(tenant):
        for each in plans:
            told = {"type": each["type"], "title": each["title"], "plan": canonical_json(each), "trace_id": "trace"}
            told |= {
                "plan_hash": plan_hash(each),
                "parent_id": each["parent"],
                "created_at": now(),
                "updated_at": now(),
            }
            WorkItem.objects.get_or_create(pk=UUID(each["id"]), defaults=told)


def note(value: float = 50, order: str = "H-1") -> PlannedCall:
    return PlannedCall("act", {"order": order, "note": value})


def plan(*calls: PlannedCall, front: str = "", prose: str = "# Context\nThe customer asked.") -> str:
    blocks = "\n\n".join(call_block(call) for call in calls)
    return f"---\nid: task-x\ntype: task\ntitle: A model's own title\n{front}---\n{prose}\n\n# What to do\n\n{blocks}\n"


_TASKS = "\n".join(
    f"````task\n---\nid: {name}\ntype: task\ntitle: {name}\n---\n{call_block(note(31, order))}\n````"
    for name, order in (("one", "H-1"), ("two", "H-3"))
)
# Two tasks that wait for nothing.
PROJECT = f"---\nid: p\ntype: project\ntitle: P\ntasks: [one, two]\n---\nDo all.\n\n{_TASKS}"
