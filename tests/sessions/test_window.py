"""Does a turn's model see what fits, and does the record say what it did not see?"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import RunContext
from pydantic_ai.usage import RunUsage

from apps.access.rules import AccessController
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.gates.schemas import AccessLevel
from apps.sessions import turn
from apps.sessions.models import ChatSession, Turn
from apps.sessions.prompt_trace import last_attempt, seen_in
from apps.sessions.queries import Said
from apps.sessions.state import Policy, Stop, TurnState
from apps.sessions.steps import context, tools
from apps.skills.roles import ActiveSkill, Metadata
from apps.skills.schemas import ToolSpec
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.briefing import Passage
from tests.factories.sessions import answered, make_session, say


def opened(deployment: Any, text: str = "And now?", persona: str = "") -> TurnState:
    session = make_session(deployment)
    say(session, text)
    with tenant_scope(deployment.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    state.settings = replace(state.settings, persona=persona)
    return state


async def windowed(deployment: Any, *lines: str, sender: str = "bot", **more: Any) -> tuple[TurnState, Stop | None]:
    """A turn after step 5, with these lines said before its message."""
    state = await in_thread(opened, deployment, **more)
    before = [Said(uuid4(), at - len(lines), sender, line, "external") for at, line in enumerate(lines, start=1)]
    state.recent = tuple(before)
    await context.remember_message(state)
    return state, await context.enforce_budget(state)


async def test_oldest_messages_leave_a_history_that_is_too_long(deployment: Any) -> None:
    state, _ = await windowed(deployment, *(f"{at} {'word ' * 3000}" for at in range(8)))
    assert [said.text[0] for said in state.history] == ["5", "6", "7"]


async def test_history_that_fits_is_left_as_it_is(deployment: Any) -> None:
    state, _ = await windowed(deployment, "one", "two")
    assert [said.text for said in state.history] == ["one", "two"]


async def test_acknowledgement_is_not_told_again(deployment: Any) -> None:
    state, _ = await windowed(deployment, "I moved.", "thanks", "ok", sender="visitor")
    assert [said.text for said in state.history] == ["I moved."]


async def test_largest_message_there_can_be_is_answered(deployment: Any) -> None:
    state, stop = await windowed(deployment, *["x" * 16_000] * 29, text="語" * 5_000)
    assert stop is None
    assert state.window is not None
    assert state.window.total <= 32_000


async def test_passages_beyond_their_room_leave_with_the_least_relevant(deployment: Any) -> None:
    state = await in_thread(opened, deployment)
    state.passages = tuple(
        Passage(f"d{at}", f"v{at}", "Terms", "", 0, 9_000, "x" * 9_000, score=at / 10) for at in (1, 9, 5)
    )
    assert await context.enforce_budget(state) is None
    assert [passage.document_id for passage in state.passages] == ["d9", "d5"]


async def test_persona_beyond_the_system_zone_hands_over_with_a_code(deployment: Any) -> None:
    _, stop = await windowed(deployment, persona="kind " * 8_000)
    assert stop == Stop("context:context_pinned_too_large", context.TOO_MUCH, wants_person=True)


# -- tools -----------------------------------------------------------------------------------------------------------


def catalogue(count: int) -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            name=f"tool_{at}",
            skill="s",
            script="scripts/tell.py",
            description="It tells something. " * 15,
            args={"type": "object"},
        )
        for at in range(count)
    )


async def built(deployment: Any, count: int) -> TurnState:
    state = await in_thread(opened, deployment)
    own = catalogue(count)
    levels = {"public": AccessLevel(tools=["knowledge_search", *(tool.name for tool in own)])}
    state.policy = Policy(gates=(), levels=levels, escalations={}, skills=("s",), tools=own)
    state.access = AccessController(levels, state.access.grant)
    await tools.build(state)
    return state


async def test_catalogue_that_fits_is_told_whole(deployment: Any) -> None:
    state = await built(deployment, 5)
    assert len(state.tools) == 6
    assert state.untold == 0


async def test_catalogue_too_large_is_cut_and_documents_stay(deployment: Any) -> None:
    state = await built(deployment, 100)
    assert state.tools[-1].name == "knowledge_search"
    assert 0 < len(state.tools) - 1 < 100
    assert state.untold == 100 - (len(state.tools) - 1)


async def test_skills_take_two_percent_of_the_window_and_the_last_go_first(deployment: Any, settings: Any) -> None:
    """Spec 10.3: `TokenBudget.skill_metadata_budget_pct`, of all that a turn's window holds."""
    state = await in_thread(opened, deployment)
    known = [
        ActiveSkill(f"s-{at}@0123456789abcdef", Metadata(f"s-{at}", "Use when. " * 9), "auto", (f"s-{at}",), (), "")
        for at in range(500)
    ]
    state.policy = Policy(
        gates=(), levels={"public": AccessLevel()}, escalations={}, skills=(), tools=(), known=tuple(known)
    )
    await tools.build(state)
    told = [each.name for each in state.skills]
    used = sum(skill.metadata.tokens for skill in known[: len(told)])
    one = known[0].metadata.tokens
    assert told == [skill.name for skill in known[: len(told)]]
    assert settings.CONTEXT_TOKENS * 0.02 - 2 * one < used <= settings.CONTEXT_TOKENS * 0.02


async def test_tool_that_was_not_told_of_is_not_offered(deployment: Any) -> None:
    state = await built(deployment, 100)
    run: RunContext[None] = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    offered = await tools.toolset_for(state).get_tools(run)
    assert offered.keys() == {tool.name for tool in state.tools}


async def test_catalogue_too_large_leaves_room_for_a_conversation(deployment: Any) -> None:
    state = await built(deployment, 500)
    assert await context.enforce_budget(state) is None


# -- the record ------------------------------------------------------------------------------------------------------


def kept(session: ChatSession, number: int) -> dict[str, Any]:
    with tenant_scope(session.tenant_id):
        found: Turn = Turn.objects.get(session_id=session.pk, number=number)
    assert found.context is not None
    return found.context


async def test_turn_keeps_what_its_model_saw_by_zone(deployment: Any) -> None:
    session = await answered(deployment, "I moved.", "Hello again", "Are you there?")
    zones = (await in_thread(kept, session, 3))["zones"]
    assert [each["id"] for each in zones["chronicle"]["items"]] == ["seq:1", "seq:2", "seq:3"]
    assert 0 < zones["chronicle"]["tokens"] < zones["chronicle"]["room"]


async def test_turn_keeps_what_was_left_out_and_why(deployment: Any) -> None:
    session = await answered(deployment, "I moved.", "thanks", "Hello again")
    evicted = (await in_thread(kept, session, 3))["evicted"]
    assert [(each["id"], each["reason"]) for each in evicted] == [("seq:2", "trivial")]


async def test_kept_window_holds_no_text(deployment: Any) -> None:
    session = await answered(deployment, "My cat is called Whiskers.", "thanks")
    assert "Whiskers" not in str(await in_thread(kept, session, 2))


async def test_audit_counts_what_was_left_out(deployment: Any) -> None:
    session = await answered(deployment, "I moved.", "thanks", "Hello again")

    def told() -> list[Any]:
        with tenant_scope(session.tenant_id):
            ends = AuditEntry.objects.filter(event=AuditEvent.TURN_COMPLETED, subject=f"session:{session.pk}")
            return [json.loads(entry.data).get("evicted") for entry in ends.order_by("seq")]

    assert await in_thread(told) == [None, None, 1]


async def test_turn_that_stopped_before_its_window_has_none(deployment: Any) -> None:
    state = await in_thread(opened, deployment)
    state.stop = Stop("gate:jailbreak")
    await in_scope(state.tenant_id, turn.close_turn, state)

    def looked() -> object:
        return seen_in(last_attempt(state.session.pk, number=1))

    assert await in_scope(state.tenant_id, looked) is None
