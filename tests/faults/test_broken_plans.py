"""A model that is broken or hostile writes the plan: the visitor reads why not, the audit log says so, nothing runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from llm.calls import PlannedCall, call_block
from tests.fakes.openai_server import FakeOpenAI, Replies, Reply, direct, final
from tests.faults.house import House, Web, await_that
from tests.faults.staff import Staff
from tests.faults.visitor import Visitor

AISHA = "I am Aisha Rahman, born on 27 June 1991."
ADDRESS = "Flat 3, 41 Canal Wharf, Leeds LS11 5PS"
FRONT = "---\nid: x\ntype: task\ntitle: As the customer wishes\n---\n"


def call(tool: str = "update_address", **args: Any) -> str:
    return call_block(PlannedCall(tool, args))


GOOD = call(policy="HM-21055", address=ADDRESS)
REFUSED = {
    "no front matter": (f"# Plan\n\n{GOOD}", "plan_front_matter_missing"),
    "front matter without end": (f"---\nid: x\ntype: task\ntitle: y\n\n{GOOD}", "plan_front_matter_unclosed"),
    "bad yaml": (f"---\nid: [x\ntype: task: task\n---\n\n{GOOD}", "plan_front_matter_invalid"),
    "a field of a wrong kind": (f"---\nid: x\ntype: dance\ntitle: y\n---\n\n{GOOD}", "plan_field_invalid"),
    "a goal": (FRONT.replace("task", "goal") + GOOD, "plan_type_not_allowed"),
    "no call": (f"{FRONT}Change it somehow.", "plan_without_calls"),
    "a call that is no json": (f"{FRONT}```call\nupdate_address(HM-21055)\n```", "bad_call_block"),
    "an unknown tool": (FRONT + call("wire_money", to="me"), "tool_not_granted"),
    "a missing argument": (FRONT + call(policy="HM-21055"), "bad_arguments"),
    "an argument of a wrong shape": (FRONT + call(policy="*", address=ADDRESS), "bad_arguments"),
    "an argument too many": (FRONT + call(policy="HM-21055", address=ADDRESS, force=True), "bad_arguments"),
    "the same call twice": (f"{FRONT}{GOOD}\n\n{GOOD}", "plan_call_twice"),
}


FREE = FRONT.replace("id: x", "id: x\nneeds_approval: false\napproved: true") + GOOD
FOREIGN = FRONT + call(policy="HM-20777", address=ADDRESS)
FINAL = ("done", "stuck", "blocked", "failed")


@dataclass
class Writer:
    """The model: hands everything on to its planner, who answers with `plan`; None is an answer without any shape."""

    plan: str | None = ""
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: dict[str, Any]) -> Reply:
        role = "proxy" if "interaction_register" in json.dumps(request["tools"]) else "planner"
        self.asked.append(role)
        if self.plan == "":
            return direct("Thank you.")
        if role == "proxy":
            return final(_to_planner())
        if self.plan is None:
            return final('{"message": ["no", "text"], "plan_action": "all of them"}')
        action = {"action": "propose", "plan_markdown": self.plan}
        return final({"message": "I have prepared that.", "plan_action": action, "needs_approval": False})


def _to_planner() -> dict[str, Any]:
    return {
        "route": "planner",
        "reason": "wants an action",
        "interaction_register": "execution",
        "interaction_mode": "act_and_report",
        "context_profile": "conversation",
    }


@dataclass
class Seen:
    """What came of each plan, by its name: what the bot said; and what the rows behind it say."""

    said: dict[str, str]
    refused: list[str]
    refused_stranger: list[str]
    fell_back: list[str]
    free_card: str
    owed: int
    foreign_ended: str
    policies: dict[str, str]


@pytest.fixture(scope="module")
def seen(house: House, web: Web, worker: subprocess.Popen[bytes], model: Callable[[Replies], FakeOpenAI]) -> Seen:
    writer = Writer()
    model(writer)
    return asyncio.run(_seen(house, web, writer))


async def _seen(house: House, web: Web, writer: Writer) -> Seen:
    async with Visitor(lambda: web) as aisha, Visitor(lambda: web) as stranger:
        await aisha.ask(AISHA)
        plans = {name: plan for name, (plan, _) in REFUSED.items()} | {
            "no shape": None,
            "free": FREE,
            "foreign": FOREIGN,
        }
        said = {name: await _propose(house, aisha, writer, plan) for name, plan in plans.items()}
        await _propose(house, stranger, writer, FRONT + GOOD)
        owed = house.rows(
            "SELECT count(*) FROM bus_queuemessage WHERE scope_id = %s AND queue = 'executor'", aisha.session_id
        )
        free, foreign = _card(house, aisha, "HM-21055"), _card(house, aisha, "HM-20777")
        ended = await _approved(house, web, foreign) if foreign else "refused"
    rows = house.rows("SELECT key, data->>'address' AS address FROM skills_record WHERE book = 'policies'")
    return Seen(
        said=said,
        refused=_audited(house, aisha, "work_refused", "code"),
        refused_stranger=_audited(house, stranger, "work_refused", "code"),
        fell_back=_audited(house, aisha, "model_fell_back", "reason"),
        free_card=free["status"],
        owed=owed[0]["count"],
        foreign_ended=ended,
        policies={row["key"]: row["address"] for row in rows},
    )


async def _propose(house: House, visitor: Visitor, writer: Writer, plan: str | None) -> str:
    """Everything the bot says in the turn in which its model proposes `plan`."""
    writer.plan = plan
    answer = await visitor.ask("Please do it for me.")
    writer.plan = ""
    rows = house.rows(
        "SELECT text FROM silas_sessions_chronicleentry WHERE session_id = %s AND seq >= %s ORDER BY seq",
        visitor.session_id,
        answer["seq"],
    )
    return " | ".join(row["text"] for row in rows)


def _card(house: House, visitor: Visitor, policy: str) -> dict[str, Any]:
    found = house.rows(
        "SELECT id, subject_id, status FROM approvals_card WHERE session_id = %s AND intent LIKE %s",
        visitor.session_id,
        f"%{policy}",
    )
    return found[0] if found else {}


async def _approved(house: House, web: Web, card: dict[str, Any]) -> str:
    """How it ends when a person says yes all the same."""
    staff = await asyncio.to_thread(Staff, lambda: web, "approver")
    await asyncio.to_thread(staff.approve, card["id"])

    def status() -> str:
        return str(house.rows("SELECT status FROM work_workitem WHERE id = %s", card["subject_id"])[0]["status"])

    await asyncio.to_thread(await_that, lambda: status() in FINAL, "the approved work ends", seconds=60)
    return status()


def _audited(house: House, visitor: Visitor, event: str, field: str) -> list[str]:
    rows = house.rows(
        "SELECT data FROM audit_auditentry WHERE event = %s AND subject = %s ORDER BY seq",
        event,
        f"session:{visitor.session_id}",
    )
    return [json.loads(row["data"])[field] for row in rows]


@pytest.mark.parametrize("name", REFUSED)
def test_broken_plan_is_refused_in_words(seen: Seen, name: str) -> None:
    assert "I can't do this" in seen.said[name]


def test_audit_log_says_why_each_was_refused(seen: Seen) -> None:
    assert seen.refused[: len(REFUSED)] == [code for _, code in REFUSED.values()]


def test_plan_of_a_visitor_below_the_level_is_refused(seen: Seen) -> None:
    assert seen.refused_stranger == ["tool_not_granted"]


def test_answer_without_shape_gets_the_planners_fallback(seen: Seen) -> None:
    assert "could not prepare this properly, so nothing was changed" in seen.said["no shape"]


def test_audit_log_says_that_the_model_gave_no_shape(seen: Seen) -> None:
    assert seen.fell_back == ["planner_structured_output_invalid"]


def test_plan_that_says_it_needs_no_approval_waits_for_a_person(seen: Seen) -> None:
    assert seen.free_card == "open"


def test_no_plan_is_owed_to_the_executor(seen: Seen) -> None:
    assert seen.owed == 0


def test_plan_for_another_customers_policy_is_never_done(seen: Seen) -> None:
    assert seen.foreign_ended not in ("done", "running", "pending")


def test_nobodys_address_was_changed(seen: Seen) -> None:
    assert ADDRESS not in seen.policies.values()
