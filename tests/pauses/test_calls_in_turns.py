"""A gate that asks about a call of a conversation pauses the turn before the call is made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from pydantic_ai import models

from apps.guard.models import ToolCall
from apps.inbox import handoff
from apps.sessions.models import ChatSession
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards
from tests.factories.pauses import (
    SAFE,
    WAITING,
    answer,
    asking_gate,
    bot_lines,
    converse,
    gate_card,
    gate_cards,
    gated,
    pause_of,
    serve,
    turns,
)
from tests.factories.skills import acting_tool, install, make_folder, read_tool
from tests.factories.work import ARGS, NOTE, NOTED, adopt
from tests.fakes.openai_server import FakeOpenAI, Reply, direct, serving_in_thread

MODEL = "openai-chat:gpt-4o-mini"
LOOKED = "It is on its way."


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """The model calls the tool, and once it has an answer, answers."""

    def reply(request: dict[str, Any]) -> Reply:
        has_result = any(message["role"] == "tool" for message in request["messages"])
        return direct(LOOKED) if has_result else Reply(calls=(("look", json.dumps({})),))

    with serving_in_thread(reply) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        yield fake


@pytest.fixture
def session(tenant: Any, tmp_path: Path, said: FakeOpenAI) -> ChatSession:
    files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
    install(tenant, make_folder(tmp_path, tools=[read_tool(), acting_tool(args=ARGS)], files=files))
    desk = adopt(tenant)
    with tenant_scope(tenant):
        desk.deployment.model_names = {"proxy": MODEL, "planner": MODEL}
        desk.deployment.environment_keys = True
        desk.deployment.save(update_fields=["model_names", "environment_keys"])
    return gated(desk.deployment, asking_gate("on_tool_call", config={"tools": ["look"]}))


def calls(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        rows = ToolCall.objects.filter(tool="look").order_by("seq")
        return list(rows.values_list("state", flat=True))


def test_call_waits_and_nothing_of_it_is_done(tenant: Any, session: ChatSession) -> None:
    converse(session, "Where is my order?")
    assert bot_lines(session) == [WAITING]
    assert turns(session) == [("paused", "gate:look")]
    assert gate_card(tenant).payload["holds"] == {"tool": "look", "args": {}}
    assert calls(tenant) == ["denied"]


def test_approved_call_is_made_and_the_visitor_is_answered(tenant: Any, session: ChatSession, owner: Any) -> None:
    converse(session, "Where is my order?")
    answer(tenant, owner, "approve")
    serve(session)
    assert bot_lines(session) == [WAITING, LOOKED]
    assert calls(tenant) == ["denied", "executed"]
    assert gate_cards(tenant) == 1


def test_approval_of_a_call_is_good_for_that_message_only(tenant: Any, session: ChatSession, owner: Any) -> None:
    converse(session, "Where is my order?")
    answer(tenant, owner, "approve")
    serve(session)
    converse(session, "And now?")
    assert gate_cards(tenant) == 2
    assert bot_lines(session)[-1] == WAITING


def test_declined_call_gives_the_safe_answer(tenant: Any, session: ChatSession, owner: Any) -> None:
    converse(session, "Where is my order?")
    answer(tenant, owner, "decline")
    serve(session)
    assert bot_lines(session) == [WAITING, SAFE]
    assert calls(tenant) == ["denied"]


def test_call_that_nobody_looked_at_gives_the_safe_answer(tenant: Any, session: ChatSession) -> None:
    converse(session, "Where is my order?")
    with time_machine.travel(pause_of(tenant).expires_at + timedelta(seconds=1)):
        expire_cards(tenant)
        serve(session)
    assert bot_lines(session) == [WAITING, SAFE]
    assert calls(tenant) == ["denied"]


def test_take_over_withdraws_the_call(tenant: Any, session: ChatSession, owner: Any, agent: Any) -> None:
    converse(session, "Where is my order?")
    answer(tenant, owner, "approve")
    with tenant_scope(tenant):
        handoff.take_over(session.pk, agent)
    serve(session)
    assert bot_lines(session) == [WAITING]
    assert calls(tenant) == ["denied"]
