"""Does anything that a model made up reach the visitor past the response gates?"""

from __future__ import annotations

from typing import Any

import pytest

from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.sessions import rules, turn
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.state import TurnState
from apps.sessions.steps import output_gates
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.schemas import AgentResponse
from tests.factories.memories import told
from tests.factories.sessions import make_session, say

FORBIDS = {"type": "regex", "config": {"pattern": r"\A(?!.*4111)"}}
REDACTS = {"type": "regex", "config": {"redact": "4111"}}


def _opened(deployment: Any, gate: dict[str, Any]) -> TurnState:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        save_gate(GateSpec(name="out", on="every_agent_response", **gate), deployment_id=deployment.pk)
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


async def suggested(deployment: Any, gate: dict[str, Any], *suggestions: str) -> list[str]:
    """The suggestions that are left of what a model gave with a harmless answer."""
    state = await in_thread(_opened, deployment, gate)
    state.response = AgentResponse(message="Hello.", suggestions=list(suggestions))
    assert await output_gates.check(state) is None
    return state.response.suggestions


@pytest.mark.parametrize("gate", [FORBIDS, REDACTS])
async def test_suggestion_that_no_answer_could_hold_is_dropped(deployment: Any, gate: dict[str, Any]) -> None:
    assert await suggested(deployment, gate, "Pay with 4111 1111 1111 1111") == []


async def test_suggestion_that_a_person_would_have_to_see_is_dropped(deployment: Any) -> None:
    """The gate asks for a person about suggestions alone: the answer passes."""
    asks = {
        "type": "custom_check",
        "config": {"logic": "or", "predicates": [{"pattern": r"\AHello"}, {"required_keywords": ["fine"]}]},
    }
    assert await suggested(deployment, asks, "Talk to a person") == []


@pytest.mark.parametrize("gate", [FORBIDS, REDACTS])
async def test_suggestion_that_passes_is_kept(deployment: Any, gate: dict[str, Any]) -> None:
    assert await suggested(deployment, gate, "Talk to a person") == ["Talk to a person"]


async def test_suggestion_that_was_just_asked_is_dropped(deployment: Any) -> None:
    assert await suggested(deployment, REDACTS, "Talk to a person", "hello!") == ["Talk to a person"]


@pytest.mark.parametrize(
    ("asked", "answer", "kept"),
    [
        ("Was ist mein Status?", "Ich zitiere: what is it, and how is it covered?", ["Mit einem Menschen sprechen"]),
        ("42", "Das ist nicht versichert.", ["Mit einem Menschen sprechen"]),
        ("What is my status?", "It is open.", ["Burglary", "Report a claim", "Mit einem Menschen sprechen"]),
        ("42", "42", ["Burglary", "Report a claim", "Mit einem Menschen sprechen"]),
    ],
)
def test_suggestions_are_in_the_visitors_language(asked: str, answer: str, kept: list[str]) -> None:
    """The company's are short: the greeting tells their language."""
    written = ["Burglary", "Report a claim"]
    wanted = [*written, "Mit einem Menschen sprechen"]
    fitting = rules.fitting_suggestions(
        wanted, asked=asked, answer=answer, written=written, greeting="How can I help you?"
    )
    assert fitting == kept


async def test_answer_that_is_held_back_leaves_neither_quotes_nor_suggestions(deployment: Any) -> None:
    """What stands beside an answer is made of its words: a visitor reads what its author wrote, and nothing else."""
    session = await in_thread(make_session, deployment)
    never = GateSpec(name="out", on="every_agent_response", type="regex", config={"pattern": "(?!)"})
    await in_scope(deployment.tenant_id, save_gate, never, deployment_id=deployment.pk)
    quote = {"document_id": "d", "version_id": "v", "title": "Secret", "quote": "4111", "start": 0, "end": 4}
    await told(session, "Hello", message="It is 4111.", suggestions=["Is it 4111?"], citations=[quote])
    assert await in_scope(deployment.tenant_id, _payloads, session) == [{}]


def _payloads(session: ChatSession) -> list[Any]:
    return list(ChronicleEntry.objects.filter(session=session, sender="bot").values_list("payload", flat=True))
