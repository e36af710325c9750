"""What does one turn reach of documents, tools and records? No more than the level it has at that moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from apps.guard.toolset import GuardedToolset
from apps.sessions import turn
from apps.sessions.models import ChatSession
from apps.sessions.state import TurnState
from apps.sessions.steps import context, tools
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.identity import MARIA, converse, make_identity_desk
from tests.factories.knowledge import ingest_texts
from tests.factories.sessions import make_session, say

QUESTION = "What is the alarm word of customers?"
LEVELS = [("public", None, False), ("verified", 900, True), ("verified", -1, False)]


def _opened(tenant: Any, folder: Path, level: str, seconds: int | None) -> TurnState:
    """A turn of a customer who proved who they are, and whose level ends in so many seconds."""
    desk = make_identity_desk(tenant, folder)
    ingest_texts(tenant, folder, min_level="verified", alarm="# Alarm\n\nThe alarm word of customers is marzipan.")
    session = make_session(desk)
    say(session, QUESTION)
    ends = None if seconds is None else now() + timedelta(seconds=seconds)
    known = {"level": level, "level_expires_at": ends, "customer": "C-1", "verified_gates": {"identity_verified": None}}
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(**known)
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


def _asked_in_german(tenant: Any, folder: Path) -> TurnState:
    session = make_session(make_identity_desk(tenant, folder))
    german = "# Ist mein\n\nIst mein Name gegen Missbrauch gesichert? Nein, ist er nicht."
    pages = {f"page{number}": f"# Page {number}\n\nRule {number} about gardens." for number in range(8)}
    ingest_texts(tenant, folder, german=german, bike="# Cover\n\nTheft of bicycles is covered up to £500.", **pages)
    say(session, "Ist mein Fahrrad gegen Diebstahl versichert?")
    with tenant_scope(tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


async def opened(tenant: Any, folder: Path, level: str, seconds: int | None) -> TurnState:
    return await in_thread(_opened, tenant, folder, level, seconds)


def first_link(state: TurnState) -> GuardedToolset:
    link: Any = tools.toolset_for(state)
    while not isinstance(link, GuardedToolset):
        link = link.wrapped
    return link


async def looked(state: TurnState) -> Any:
    """What a model is told that calls `look`."""
    link = first_link(state)
    run: RunContext[None] = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    return await link.call_tool("look", {}, run, (await link.get_tools(run))["look"])


@pytest.mark.parametrize(("level", "seconds", "reached"), LEVELS)
async def test_turn_is_given_documents_of_its_level_only(
    tenant: Any, tmp_path: Path, level: str, seconds: int | None, reached: bool
) -> None:
    state = await opened(tenant, tmp_path, level, seconds)
    await context.retrieve(state)
    assert any("marzipan" in passage.quote for passage in state.passages) is reached


async def test_a_turn_finds_english_documents_for_a_question_in_another_language(tenant: Any, tmp_path: Path) -> None:
    """By the English words of the question; other pages are nearer by its own."""
    state = await in_thread(_asked_in_german, tenant, tmp_path)
    await context.retrieve(state)
    assert "bicycles" in state.passages[0].quote


@pytest.mark.parametrize(("level", "seconds", "reached"), LEVELS)
async def test_tools_of_a_turn_are_given_the_records_of_a_customer_whose_level_stands(
    tenant: Any, tmp_path: Path, level: str, seconds: int | None, reached: bool
) -> None:
    """Half of a proof names a customer too, and so does a level that has ended."""
    given = first_link(await opened(tenant, tmp_path, level, seconds)).context
    whole, nothing = ("C-1", ("public", "verified")), ("", ("public",))
    assert (given["customer"], given["levels"]) == (whole if reached else nothing)


@pytest.mark.parametrize(("seconds_left", "told"), [(60, {"say": "ok"}), (-1, "tool_not_granted")])
async def test_call_after_the_level_ended_in_the_middle_of_its_turn_is_refused(
    tenant: Any, tmp_path: Path, seconds_left: int, told: Any
) -> None:
    """The turn began with the tool, and the guard asks the database what time it is."""
    state = await opened(tenant, tmp_path, "verified", 60)
    ends = replace(state.access.grant, expires_at=now() + timedelta(seconds=seconds_left))
    state.access = replace(state.access, grant=ends)
    said = await looked(state)
    assert said.get("refused", said) == told


async def test_turn_in_which_somebody_proves_who_they_are_has_the_tools_of_their_level(
    tenant: Any, tmp_path: Path
) -> None:
    """Step 14 comes before step 6: nobody has to ask twice."""
    state = await in_thread(_said, tenant, tmp_path)
    for step in turn.BETWEEN[: [step.name for step in turn.BETWEEN].index("toolset") + 1]:
        assert await step.run(state) is None
    assert "look" in {tool.name for tool in state.tools}


def _said(tenant: Any, folder: Path) -> TurnState:
    session = make_session(make_identity_desk(tenant, folder))
    say(session, MARIA)
    with tenant_scope(tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


async def test_name_and_date_in_passing_make_nobody_of_a_known_visitor_somebody_else(
    tenant: Any, tmp_path: Path
) -> None:
    """They may be those of somebody whom the talk is about; whoever is somebody else says so."""
    session = await in_thread(make_session, await in_thread(make_identity_desk, tenant, tmp_path))
    session = await converse(session, MARIA, "Jonas Berg, 1979-11-02")
    assert session.level == "verified"
    assert session.customer == "C-1"
