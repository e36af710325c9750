"""A planner's research: limited, read-only, used in time or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.guard.models import GuardedRun
from apps.tenants.models import Deployment
from apps.toolservers.web.services import set_search
from apps.work.models import Course, Planning, ResearchRequest
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.planning import (
    MODEL,
    advice,
    body_of,
    failing,
    messages,
    outcomes,
    paused,
)
from tests.factories.work import Desk, end_waits, note
from tests.fakes.openai_server import FakeOpenAI, Reply, final
from tests.fakes.search_provider import SearchFake, searching


def asks(*tasks: str) -> Reply:
    calls = [
        ("request_research", json.dumps({"task": task, "return_format": "one line", "max_tokens": 20}))
        for task in tasks
    ]
    return Reply(calls=tuple(calls))


def researching(tasks: list[str], then: Reply | None = None) -> Callable[[dict[str, Any]], Reply]:
    """Ask first; once answered, or when no more questions are allowed, give advice."""

    def answer(request: dict[str, Any]) -> Reply:
        said = body_of(request)
        return (then or advice()) if "# Research:" in said or '"role": "tool"' in said else asks(*tasks)

    return answer


def requests_of(desk: Desk) -> list[ResearchRequest]:
    with tenant_scope(desk.tenant):
        return list(ResearchRequest.objects.order_by("created_at"))


def planning(desk: Desk) -> Planning:
    with tenant_scope(desk.tenant):
        found: Planning = Planning.objects.get()
        return found


def waiting_for_research(desk: Desk, approver: Any) -> None:
    paused(desk, approver)
    desk.work(Queue.PLANNER)


def test_planner_that_asks_waits_without_holding_anything(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = researching(["What is the limit?"])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    (question,) = messages(desk, "research_request")
    assert planning(desk).state == "awaiting_research"
    assert planning(desk).rounds == 1
    assert question.state == "queued"
    assert messages(desk, "consult_planner")[0].state == "acked"


def test_answers_let_the_planner_go_on(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    planner.replies = researching(["What is the limit?", "Who decides?"])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    desk.work(Queue.EXECUTOR, Queue.PLANNER)
    assert [request.state for request in requests_of(desk)] == ["answered", "answered"]
    assert planning(desk).state == "finished"
    assert len(messages(desk, "planner_guidance")) == 1


def test_planner_asks_three_things_at_once_and_no_more(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = researching(["a?", "b?", "c?", "d?"])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    assert [request.task for request in requests_of(desk)] == ["a?", "b?", "c?"]


def test_same_question_twice_is_one(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI) -> None:
    planner.replies = researching(["What is the limit?", " What  is the limit? "])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    assert len(requests_of(desk)) == 1


def test_planner_has_five_rounds_and_then_has_to_finish(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    number = iter(range(100))

    def always_asks(request: dict[str, Any]) -> Reply:
        return advice("Well then.") if "no more research" in body_of(request) else asks(f"question {next(number)}?")

    planner.replies = lambda request: advice("Asked.") if '"role": "tool"' in body_of(request) else always_asks(request)
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.EXECUTOR, Queue.PLANNER)
    assert planning(desk).state == "finished"
    assert planning(desk).rounds == 5
    assert len(requests_of(desk)) == 5


def test_answer_that_is_delivered_twice_counts_once(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = researching(["What is the limit?"])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    desk.work(Queue.EXECUTOR, Queue.PLANNER)
    with tenant_scope(tenant):
        QueueMessage.objects.filter(kind="research_result").update(state="queued", finished_at=None)
    desk.work(Queue.PLANNER)
    assert outcomes(desk, "research_ended") == ["answered"]
    assert len(messages(desk, "planner_guidance")) == 1


def test_research_that_takes_too_long_lets_the_planner_do_its_best(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = researching(["What is the limit?"])
    with override_settings(RESEARCH_SECONDS=0, GUIDANCE_SECONDS=900):
        desk = failing(tenant, tmp_path)
        waiting_for_research(desk, approver)
        end_waits(tenant)
        before = planning(desk).state
        desk.work(Queue.PLANNER)
    assert before == "expired"
    assert planning(desk).state == "finished"
    assert requests_of(desk)[0].state == "expired"
    assert "no answer: it did not come in time" in body_of(planner.requests[-1])


def test_answer_that_comes_late_is_written_down_and_not_used(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = researching(["What is the limit?"])
    desk = failing(tenant, tmp_path)
    waiting_for_research(desk, approver)
    desk.work(Queue.EXECUTOR)
    with tenant_scope(tenant):
        ResearchRequest.objects.update(deadline=now())
    end_waits(tenant)
    desk.work(Queue.PLANNER)
    assert outcomes(desk, "research_ended") == ["timeout", "late"]
    assert requests_of(desk)[0].result == ""


def test_research_is_cut_to_the_length_that_was_asked_for(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    long = final({"summary": "x" * 5000})

    def answer(request: dict[str, Any]) -> Reply:
        said = body_of(request)
        if "Find out what is asked" in said:
            return long
        return advice() if "# Research:" in said or '"role": "tool"' in said else asks("What is the limit?")

    planner.replies = answer
    desk = failing(tenant, tmp_path)
    with tenant_scope(tenant):
        names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": "builtin:grounded"}
    paused(desk, approver)
    desk.work(Queue.PLANNER)
    with tenant_scope(tenant):
        Deployment.objects.filter(pk=desk.deployment.pk).update(model_names={**names, "executor": MODEL})
    desk.work(Queue.EXECUTOR, Queue.PLANNER)
    assert requests_of(desk)[0].result == "x" * 80


@pytest.mark.parametrize("tool", ["act", "look", "shell_exec", "python_exec", "write_file", "skill_exec"])
def test_research_reaches_no_tool_beyond_its_list(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, tool: str
) -> None:
    """Whatever the message allows and the model calls, including the item's own acting tool."""
    args = json.dumps(note(99).args)

    def answer(request: dict[str, Any]) -> Reply:
        said = body_of(request)
        if "Find out what is asked" in said:
            done = '"role": "tool"' in said or "Unknown tool" in said
            return final({"summary": "done"}) if done else Reply(calls=((tool, args),))
        return advice() if "# Research:" in said or '"role": "tool"' in said else asks("What is the limit?")

    planner.replies = answer
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.PLANNER)
    with tenant_scope(tenant):
        names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": MODEL}
        Deployment.objects.filter(pk=desk.deployment.pk).update(model_names=names)
        (message,) = QueueMessage.objects.filter(kind="research_request")
        message.extras["constraints"]["tools_allowed"] = [tool, "memory_search"]
        message.save(update_fields=["extras"])
        run_id = Course.objects.get().plan_run_id
    desk.work(Queue.EXECUTOR)
    offered = [
        each["function"]["name"]
        for request in planner.requests
        if "Find out what is asked" in body_of(request)
        for each in request["tools"]
    ]
    with tenant_scope(tenant):
        made = GuardedRun.objects.get(pk=run_id).tool_calls.filter(tool=tool).count()
    assert tool not in offered
    assert made == 0
    assert desk.order().data.get("note") == 50


def searching_for_the_limit(request: dict[str, Any]) -> Reply:
    """A planner that asks, and a researcher that searches the web once."""
    said = body_of(request)
    if "Find out what is asked" in said:
        done = "Unknown tool" in said or '"role": "tool"' in said
        return final({"summary": "none"}) if done else Reply(calls=(("web_search", json.dumps({"query": "limit"})),))
    return advice() if "# Research:" in said or '"role": "tool"' in said else asks("What is the limit?")


def test_research_is_not_told_of_a_search_that_is_not_set_up(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI
) -> None:
    planner.replies = searching_for_the_limit
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.PLANNER)
    with tenant_scope(tenant):
        names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": MODEL}
        Deployment.objects.filter(pk=desk.deployment.pk).update(model_names=names)
    desk.work(Queue.EXECUTOR)
    asked = [each for each in planner.requests if "Find out what is asked" in body_of(each)]
    assert {tool["function"]["name"] for each in asked for tool in each["tools"]}.isdisjoint({"web_search"})
    assert "Unknown tool" in body_of(asked[-1])


def test_research_searches_the_web_where_that_is_set_up(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, settings: Any
) -> None:
    planner.replies = searching_for_the_limit
    desk = failing(tenant, tmp_path)
    paused(desk, approver)
    desk.work(Queue.PLANNER)
    with searching(SearchFake()) as fake:
        settings.EGRESS_PRIVATE = [fake.place]
        with tenant_scope(tenant):
            set_search("brave", key="search-key", base_url=fake.url, actor="user:1")
            names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": MODEL}
            Deployment.objects.filter(pk=desk.deployment.pk).update(model_names=names)
        desk.work(Queue.EXECUTOR)
    asked = [each for each in planner.requests if "Find out what is asked" in body_of(each)]
    assert len(fake.asked) == 1
    assert fake.pages[0][1] in body_of(asked[-1])
