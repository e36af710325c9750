"""Do the scripted conversations come out as expected with the built-in model, and would the replay notice if not?"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from apps.simulations.conversation import Outcome, misses, play
from apps.simulations.reports import Result
from apps.simulations.schemas import Cite, Line, Said
from apps.simulations.scripts import Conversation, scripts
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_key
from evals.__main__ import fallbacks, line
from kernel.tenancy import in_thread
from silas_platform import demo

ALL = [(script.deployment, one) for script in scripts() for one in script.conversations]
OUTCOME = Outcome(
    route="direct",
    tools=["look"],
    cites=[Cite(document="Home policy", section="4.2")],
    level="public",
    escalation="none",
    work="none",
    person=False,
    queue="",
    said="It is covered.",
    answered_by="builtin:grounded",
)
SAID = Said(visitor="x", bot="y", route="direct", tools=[], level="public", work="none", answered_by="m")


@pytest.fixture(scope="module")
def copy(migrated: None, django_db_blocker: Any) -> str:
    """Demo tenants of this module's own: conversations with them leave work behind."""
    name = f"-{uuid4().hex[:6]}"
    with django_db_blocker.unblock():
        demo.seed(progress=lambda _: None, copy=name)
    return name


def _deployment(key: str) -> Deployment:
    found = deployment_by_key(key)
    assert found is not None
    return found


@pytest.mark.parametrize(("key", "conversation"), ALL, ids=[one.name for _, one in ALL])
async def test_conversation_comes_out_as_expected(
    database: None, copy: str, key: str, conversation: Conversation
) -> None:
    played = await play(await in_thread(_deployment, key + copy), conversation.turns)
    assert played.misses == []


def test_there_are_many_conversations_with_each_tenant() -> None:
    counted = [len(script.conversations) for script in scripts()]
    assert sum(counted) >= 40
    assert min(counted) >= 15


def test_there_are_many_attacks() -> None:
    assert sum(one.name.startswith("attack: ") for _, one in ALL) >= 30


def test_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    one = "{name: a, turns: [{say: x}]}"
    (tmp_path / "a.yaml").write_text(f"deployment: d\nconversations: [{one}, {one}]")
    with pytest.raises(ValueError, match="more than one conversation is named a"):
        scripts(tmp_path)


@pytest.mark.parametrize(
    ("expected", "miss"),
    [
        ({"route": "planner"}, "route is 'direct', not 'planner'"),
        ({"tools": []}, "tools is ['look'], not []"),
        ({"cites": []}, "cites Home policy 4.2, not nothing"),
        ({"cites": [{"document": "Home policy", "section": "4.3"}]}, "does not cite Home policy 4.3"),
        ({"level": "verified"}, "level is 'public', not 'verified'"),
        ({"escalation": "respond"}, "escalation is 'none', not 'respond'"),
        ({"work": "card"}, "work is 'none', not 'card'"),
        ({"person": True}, "person is False, not True"),
        ({"queue": "support_l2"}, "queue is '', not 'support_l2'"),
        ({"says": ["£50,000"]}, "does not say '£50,000': 'It is covered.'"),
        ({"speaks": "de"}, "speaks 'en', not 'de': 'It is covered.'"),
        ({"never": ["COVERED"]}, "says 'COVERED'"),
    ],
)
def test_what_did_not_come_is_a_miss(expected: dict[str, Any], miss: str) -> None:
    assert misses(Line(say="x", **expected), OUTCOME) == [miss]


def test_silence_is_a_miss() -> None:
    assert misses(Line(say="x"), replace(OUTCOME, said="")) == ["says nothing"]


def test_saying_the_same_twice_is_a_miss() -> None:
    assert misses(Line(say="x"), OUTCOME, before=OUTCOME.said) == ["repeats itself: 'It is covered.'"]


def test_what_is_not_expected_is_not_looked_at() -> None:
    assert misses(Line(say="x"), OUTCOME) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "deployment: d\nconversations: [{name: a, turns: []}]",
        "deployment: d\nconversations: [{name: a, turns: [{say: x, rout: direct}]}]",
        "deployment: d\nconversations: [{name: a, turns: [{say: x, route: sideways}]}]",
        "conversations: []",
    ],
)
def test_script_with_a_slip_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "a.yaml").write_text(wrong)
    with pytest.raises(ValidationError):
        scripts(tmp_path)


def test_table_names_each_miss_below_its_conversation() -> None:
    result = Result(
        name="a burst pipe", misses=["turn 2: says nothing"], cost_usd=Decimal(0), conversation=[SAID, SAID]
    )
    assert line(result) == "MISS   2 turns  a burst pipe\n      turn 2: says nothing"


def test_turn_that_the_built_in_model_answered_instead_is_a_miss() -> None:
    instead = SAID.model_copy(update={"answered_by": "builtin:grounded"})
    result = Result(name="x", misses=[], cost_usd=Decimal(0), conversation=[SAID, instead])
    assert fallbacks(result) == ["the built-in model answered 1 turns"]
