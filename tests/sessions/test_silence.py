"""Does the bot stay silent from a take-over's commit on, in whatever order people and turns come?

10,000 lives of the rule alone, and some dozens of the real thing: rows, locks, leases, turns.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from apps.inbox import handoff
from apps.sessions import rules, turn
from apps.sessions.models import ChatSession
from apps.sessions.queries import chronicle_after
from apps.sessions.state import TurnState
from kernel.tenancy import in_scope, in_thread
from tests.factories.sessions import make_session, say

LIVES, REAL_LIVES, MOVES = 10_000, 36, 14


@dataclass
class Life:
    """A conversation as commits make it, and a plain account of it: who took it when, and which turn spoke when."""

    owner: str = "bot"
    epoch: int = 0
    time: int = 0
    taken_at: int = -1
    turns: list[tuple[int, int]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    spoken: int = 0

    def hand(self, to: str) -> None:
        if self.owner == to:
            return
        self.owner, self.epoch = to, self.epoch + 1
        if to == "human":
            self.taken_at = self.time

    def close_turn(self, which: int) -> None:
        if not self.turns:
            return
        began_in, began_at = self.turns.pop(which % len(self.turns))
        if not rules.may_speak(self.owner, self.epoch, began_in=began_in):
            return
        self.spoken += 1
        if self.owner == "human" or began_at < self.taken_at:
            self.wrong.append(f"a turn of {began_at} spoke at {self.time}, taken at {self.taken_at}")


def live(chance: random.Random) -> Life:
    life = Life()
    for life.time in range(chance.randint(2, 24)):
        move = chance.randrange(5)
        if move < 2 and life.owner == "bot":
            life.turns.append((life.epoch, life.time))
        elif move == 2:
            life.hand("human")
        elif move == 3:
            life.hand("bot")
        else:
            life.close_turn(chance.randrange(9))
    return life


def test_ten_thousand_orders_of_taking_and_answering_record_nothing_after_the_take_over() -> None:
    chance = random.Random(20261122)
    lives = [live(chance) for _ in range(LIVES)]
    assert [wrong for each in lives for wrong in each.wrong] == []
    assert sum(each.spoken for each in lives) > LIVES / 2


@pytest.mark.parametrize(("owner", "epoch", "may"), [("bot", 3, True), ("human", 3, False), ("bot", 5, False)])
def test_turn_speaks_only_in_its_own_epoch_of_the_bot(owner: str, epoch: int, may: bool) -> None:
    assert rules.may_speak(owner, epoch, began_in=3) is may


async def _real_life(deployment: Any, agent: Any, chance: random.Random) -> ChatSession:
    """Messages, turns that begin and end later, and people in between, each a transaction of its own."""
    session = await in_thread(make_session, deployment)
    running: TurnState | None = None
    for number in range(MOVES):
        move = chance.randrange(5)
        if move == 0:
            await in_thread(say, session, f"Is it covered, {number}?")
        elif move == 1 and running is None:
            running = await in_scope(deployment.tenant_id, turn.open_turn, session.pk, consumer="test")
        elif move == 2:
            await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
        elif move == 3:
            await in_scope(deployment.tenant_id, handoff.hand_back, session.pk, agent)
        elif running is not None:
            await turn.run(running)
            running = None
    return session


async def test_dozens_of_real_orders_record_no_bot_message_while_a_person_answers(deployment: Any, agent: Any) -> None:
    chance, answers = random.Random(7), 0
    for _ in range(REAL_LIVES):
        session = await _real_life(deployment, agent, chance)
        owner = "bot"
        for entry in await in_scope(deployment.tenant_id, chronicle_after, session.pk, 0):
            if entry.kind == "owner":
                owner = entry.payload["owner"]
            elif entry.sender == "bot":
                answers += 1
                assert owner == "bot"
    assert answers > 5
