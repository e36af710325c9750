"""A gate that asks at a message, an answer or a call of a conversation pauses the turn until a person has looked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from apps.approvals.enums import CardKind, PauseState
from apps.approvals.models import Card, GatePause, TokenUse
from apps.bus.models import QueueMessage
from apps.inbox import handoff
from apps.inbox import services as desk
from apps.sessions import turn
from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession
from apps.visitors import forgetting
from kernel.errors import SilasError
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
from tests.factories.sessions import make_session, say
from tests.rivals import race

INPUT, OUTPUT = "every_user_message", "every_agent_response"
BOTH = pytest.mark.parametrize("on", [INPUT, OUTPUT])


@BOTH
def test_turn_ends_with_a_waiting_line_and_one_card(deployment: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    card = gate_card(deployment.tenant)
    assert bot_lines(session) == [WAITING]
    assert turns(session) == [("paused", "gate:look")]
    assert card.kind == CardKind.GATE
    assert card.is_open
    assert card.session_id == session.pk
    assert card.payload["trigger"] == on
    assert card.payload["gates"] == [{"name": "look", "reason": "This always needs approval"}]


@BOTH
def test_card_waits_two_minutes(deployment: Any, on: str) -> None:
    converse(gated(deployment, asking_gate(on)), "Hello")
    card, pause = gate_card(deployment.tenant), pause_of(deployment.tenant)
    assert pause.expires_at - pause.created_at == timedelta(seconds=120)
    assert card.expires_at == pause.expires_at


@BOTH
def test_gate_may_say_how_long_it_waits(deployment: Any, on: str) -> None:
    converse(gated(deployment, asking_gate(on, config={"wait_seconds": 45})), "Hello")
    pause = pause_of(deployment.tenant)
    assert pause.expires_at - pause.created_at == timedelta(seconds=45)


def test_card_of_a_message_shows_the_message(deployment: Any) -> None:
    converse(gated(deployment, asking_gate(INPUT)), "Hello there")
    assert gate_card(deployment.tenant).payload["holds"] == {"message": "Hello there"}


def test_card_of_an_answer_shows_the_answer_and_the_visitor_gets_exactly_that(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(OUTPUT))
    converse(session, "Hello")
    drafted = gate_card(deployment.tenant).payload["holds"]["response"]
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert drafted not in ("", WAITING)
    assert bot_lines(session) == [WAITING, drafted]
    assert turns(session) == [("paused", "gate:look"), ("done", "")]


def test_approved_message_is_answered(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(INPUT))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert len(bot_lines(session)) == 2
    assert bot_lines(session)[1] not in (WAITING, SAFE)
    assert turns(session)[-1] == ("done", "")
    assert gate_cards(deployment.tenant) == 1


@BOTH
def test_approval_is_spent_once_and_the_message_is_owed_once(deployment: Any, owner: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    serve(session)
    serve(session)
    with tenant_scope(deployment.tenant):
        assert TokenUse.objects.count() == 1
        assert QueueMessage.objects.filter(message_id__startswith="pause:").count() == 1
    assert pause_of(deployment.tenant).state == PauseState.RESUMED
    assert pause_of(deployment.tenant).kept == {}
    assert len(bot_lines(session)) == 2


@BOTH
def test_declined_gives_the_safe_answer(deployment: Any, owner: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "decline")
    serve(session)
    assert bot_lines(session) == [WAITING, SAFE]
    assert turns(session)[-1] == ("stopped", "gate:look")


@BOTH
def test_silence_gives_the_safe_answer(deployment: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    with time_machine.travel(pause_of(deployment.tenant).expires_at + timedelta(seconds=1)):
        expire_cards(deployment.tenant)
        serve(session)
    assert bot_lines(session) == [WAITING, SAFE]
    assert pause_of(deployment.tenant).state == PauseState.EXPIRED


@BOTH
def test_process_that_dies_while_the_turn_waits_or_resumes_loses_nothing(deployment: Any, owner: Any, on: str) -> None:
    """Nothing of the pause is in a process. The turn that resumes is begun by one process and ended by another."""
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    with tenant_scope(deployment.tenant):
        assert turn.open_turn(session.pk, consumer="dies") is not None
        QueueMessage.objects.filter(message_id__startswith="pause:").update(
            state="queued", leased_until=None, attempts=1
        )
    serve(session)
    assert len(bot_lines(session)) == 2
    assert bot_lines(session)[1] not in (WAITING, SAFE)
    assert turns(session)[-1] == ("done", "")


@BOTH
@pytest.mark.parametrize("choice", ["", "approve"])
def test_take_over_withdraws_what_waits(deployment: Any, owner: Any, agent: Any, on: str, choice: str) -> None:
    """Before anybody has answered, and between the approval and the turn that resumes."""
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    if choice:
        answer(deployment.tenant, owner, choice)
    with tenant_scope(deployment.tenant):
        handoff.take_over(session.pk, agent)
    serve(session)
    with tenant_scope(deployment.tenant):
        handoff.hand_back(session.pk, agent)
    serve(session)
    assert bot_lines(session) == [WAITING]
    assert pause_of(deployment.tenant).state == PauseState.WITHDRAWN
    assert not gate_card(deployment.tenant).is_open


@BOTH
@pytest.mark.parametrize("choice", ["", "approve"])
def test_resolving_withdraws_what_waits(deployment: Any, owner: Any, agent: Any, on: str, choice: str) -> None:
    """Before anybody has answered, and between the approval and the turn that resumes."""
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    if choice:
        answer(deployment.tenant, owner, choice)
    with tenant_scope(deployment.tenant):
        desk.resolve(session.pk, agent)
    serve(session)
    assert bot_lines(session) == [WAITING]
    assert pause_of(deployment.tenant).state == PauseState.WITHDRAWN
    assert pause_of(deployment.tenant).kept == {}
    assert not gate_card(deployment.tenant).is_open


def test_resolving_by_somebody_without_the_right_withdraws_nothing(deployment: Any, viewer: Any) -> None:
    session = gated(deployment, asking_gate(INPUT))
    converse(session, "Hello")
    with pytest.raises(SilasError), tenant_scope(deployment.tenant):
        desk.resolve(session.pk, viewer)
    assert pause_of(deployment.tenant).state == PauseState.WAITING


@BOTH
def test_pause_whose_conversation_changed_hands_comes_to_nothing(deployment: Any, owner: Any, on: str) -> None:
    """The turn closed its pause in the very moment in which a person took over: the epoch decides."""
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    with tenant_scope(deployment.tenant):
        ChatSession.objects.filter(pk=session.pk).update(owner_epoch=session.owner_epoch + 2, owner=Owner.BOT)
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert bot_lines(session) == [WAITING]


@BOTH
def test_forgotten_visitor_s_pause_is_withdrawn_with_what_it_kept(deployment: Any, owner: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    with tenant_scope(deployment.tenant):
        forgetting.forget_visitor(session.pk, owner)
    pause = pause_of(deployment.tenant)
    assert pause.state == PauseState.WITHDRAWN
    assert pause.kept == {}
    with pytest.raises(SilasError):
        answer(deployment.tenant, owner, "approve")


@BOTH
def test_of_two_approvers_one_decides(deployment: Any, owner: Any, approver: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    card = gate_card(deployment.tenant)
    outcomes = race(
        lambda: answer(deployment.tenant, owner, "approve", card),
        lambda: answer(deployment.tenant, approver, "decline", card),
    )
    serve(session)
    assert sum(isinstance(outcome, SilasError) for outcome in outcomes) == 1
    assert len(bot_lines(session)) == 2


@BOTH
def test_paused_turn_holds_up_no_other_message(deployment: Any, on: str) -> None:
    session = gated(deployment, asking_gate(on, type="custom_check", config={"required_keywords": ["please"]}))
    other = make_session(deployment)
    converse(session, "Hello")
    converse(other, "Hello, please")
    assert turns(session)[0][0] == "paused"
    assert turns(other)[0][0] in ("done", "paused" if on == OUTPUT else "done")


def test_message_that_waits_is_read_by_no_model_until_it_is_let_in(deployment: Any, owner: Any) -> None:
    gate = asking_gate(INPUT, type="custom_check", config={"required_keywords": ["please"]})
    session = gated(deployment, gate)
    converse(session, "Hello")
    say(session, "And now, please")
    with tenant_scope(deployment.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        assert [entry.kept_out for entry in state.recent if entry.sender == "visitor"] == [True]


def test_declined_message_stays_kept_out(deployment: Any, owner: Any) -> None:
    gate = asking_gate(INPUT, type="custom_check", config={"required_keywords": ["please"]})
    session = gated(deployment, gate)
    converse(session, "Hello")
    answer(deployment.tenant, owner, "decline")
    serve(session)
    say(session, "And now, please")
    with tenant_scope(deployment.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        assert [entry.kept_out for entry in state.recent if entry.sender == "visitor"] == [True]


def test_gates_that_ask_together_are_on_one_card(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(OUTPUT), asking_gate(OUTPUT, name="second"))
    converse(session, "Hello")
    assert [gate["name"] for gate in gate_card(deployment.tenant).payload["gates"]] == ["look", "second"]
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert gate_cards(deployment.tenant) == 1
    assert turns(session)[-1] == ("done", "")


def test_gate_that_asks_at_both_ends_asks_twice(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(INPUT, name="in"), asking_gate(OUTPUT, name="out"))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert gate_card(deployment.tenant).payload["trigger"] == OUTPUT
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert gate_cards(deployment.tenant) == 2
    assert turns(session)[-1] == ("done", "")
    assert len(bot_lines(session)) == 3


def test_gate_that_came_into_force_meanwhile_is_asked_about_too(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(OUTPUT))
    converse(session, "Hello")
    gated(deployment, asking_gate(OUTPUT, name="newer"))
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert gate_cards(deployment.tenant) == 2
    assert [gate["name"] for gate in gate_card(deployment.tenant).payload["gates"]] == ["newer"]


def test_gate_that_blocks_by_now_keeps_an_approved_answer_back(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(OUTPUT))
    converse(session, "Hello")
    gated(deployment, asking_gate(OUTPUT, name="never", type="regex", config={"pattern": "(?!)"}))
    answer(deployment.tenant, owner, "approve")
    serve(session)
    assert bot_lines(session) == [WAITING, SAFE]


def test_visitor_floods_no_review_queue(deployment: Any) -> None:
    session = gated(deployment, asking_gate(INPUT))
    for number in range(5):
        converse(session, f"Hello {number}")
    assert gate_cards(deployment.tenant) == 3
    assert bot_lines(session) == [WAITING] * 3 + [SAFE] * 2


@BOTH
@pytest.mark.parametrize("field", ["holds", "gates"])
def test_pause_that_was_changed_in_the_database_lets_nothing_through(
    deployment: Any, owner: Any, on: str, field: str
) -> None:
    """The signed approval binds what the card showed: whoever writes another text into the row has no approval."""
    session = gated(deployment, asking_gate(on))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    pause = pause_of(deployment.tenant)
    other = {"holds": {"message": "x", "response": "x"}, "gates": [{"name": "all", "reason": ""}]}
    with tenant_scope(deployment.tenant):
        pause.payload[field] = other[field]
        pause.save(update_fields=["payload"])
    serve(session)
    assert gate_cards(deployment.tenant) == 2
    assert bot_lines(session) == [WAITING, WAITING]


def test_state_that_was_forged_without_an_approval_lets_nothing_through(deployment: Any, owner: Any) -> None:
    session = gated(deployment, asking_gate(INPUT), asking_gate(OUTPUT, name="out"))
    converse(session, "Hello")
    answer(deployment.tenant, owner, "approve")
    serve(session)
    first, second = _pauses(deployment.tenant)
    with tenant_scope(deployment.tenant):
        GatePause.objects.filter(pk=second.pk).update(state=PauseState.APPROVED, token=first.token)
        Card.objects.filter(subject_id=second.pk).update(status="expired", settled_at=second.created_at)
        QueueMessage.objects.filter(message_id=f"pause:{first.pk}").update(
            message_id="forged",
            state="queued",
            finished_at=None,
            payload={"seq": second.kept["seq"], "pause": str(second.pk)},
        )
    serve(session)
    assert bot_lines(session) == [WAITING, WAITING, WAITING]


def _pauses(tenant: Any) -> list[GatePause]:
    with tenant_scope(tenant):
        return list(GatePause.objects.select_related("token").order_by("created_at"))
