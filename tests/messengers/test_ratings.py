"""Ratings in channels: one question after staff resolved a conversation, answered by press, number or label."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.bus.enums import Kind
from apps.inbox.services import reopen, resolve
from apps.inbox.staff import Staff, member_of
from apps.messengers import inbound
from apps.messengers.models import Channel, ChannelThread
from apps.sessions.models import ChronicleEntry
from apps.tenants.enums import Role
from apps.visitors import offers
from apps.visitors.ratings import rating_of
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messengers import Recorder, make_channel, message
from tests.factories.tenants import make_member
from tests.messengers.conftest import Say


@pytest.fixture
def channel(recorder: Recorder, deployment: Any) -> Channel:
    with tenant_scope(deployment.tenant_id):
        offers.change(deployment, actor="user:test", rating="stars")
    return make_channel(deployment)


@pytest.fixture
def staff(channel: Channel) -> Any:
    with tenant_scope(channel.tenant_id):
        return member_of(make_member(channel.tenant, Role.AGENT))


def take(channel: Channel, text: str = "", **more: Any) -> inbound.Outcome:
    return inbound.receive(channel.tenant_id, channel.pk, message(text, **more))


def begin(channel: Channel) -> UUID:
    session_id = take(channel, "Hello").session_id
    assert session_id is not None
    return session_id


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def close(channel: Channel, session_id: UUID, staff: Staff) -> None:
    with tenant_scope(channel.tenant_id):
        resolve(session_id, staff)
    deliver(channel)


def score(channel: Channel, session_id: UUID) -> int | None:
    with tenant_scope(channel.tenant_id):
        row = rating_of(session_id)
    return row.score if row else None


@pytest.mark.parametrize(
    ("scale", "answer", "expected"),
    [
        ("stars", {"text": "4"}, 4),
        ("stars", {"text": " 5. "}, 5),
        ("stars", {"text": "★★"}, 2),
        ("stars", {"choice": "rate:3"}, 3),
        ("thumbs", {"text": "👎"}, 1),
        ("thumbs", {"text": "1"}, 5),
        ("thumbs", {"choice": "rate:1"}, 1),
    ],
)
def test_question_follows_the_resolution_and_is_answered(
    channel: Channel, recorder: Recorder, staff: Staff, scale: str, answer: dict[str, str], expected: int
) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(channel.deployment, actor="user:test", rating=scale)
    session_id = begin(channel)
    close(channel, session_id, staff)
    assert recorder.texts == ["How was this conversation?"]
    assert len(recorder.sent[0][1].options) == (5 if scale == "stars" else 2)
    assert take(channel, **answer).problem == "rated"
    assert score(channel, session_id) == expected
    deliver(channel)
    assert recorder.texts[-1] == "Thank you for your rating."
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.filter(session_id=session_id).count() == 1


def test_number_counts_directly_after_the_question_alone(
    channel: Channel, recorder: Recorder, staff: Staff, say: Say
) -> None:
    session_id = begin(channel)
    assert take(channel, "4").problem == ""
    close(channel, session_id, staff)
    assert take(channel, "Thanks, but one more thing").problem == ""
    assert take(channel, "5").problem == ""
    assert score(channel, session_id) is None
    assert take(channel, choice="rate:5").problem == "rated"
    assert take(channel, "2").problem == ""
    assert score(channel, session_id) == 5


def test_number_before_the_question_was_sent_is_a_message(channel: Channel, staff: Staff) -> None:
    session_id = begin(channel)
    with tenant_scope(channel.tenant_id):
        resolve(session_id, staff)
    assert take(channel, "5").problem == ""
    assert score(channel, session_id) is None


@pytest.mark.parametrize("text", ["0", "6", "-1", "5 stars would be too much", "٣"])
def test_what_is_no_score_is_a_message(channel: Channel, staff: Staff, text: str) -> None:
    session_id = begin(channel)
    close(channel, session_id, staff)
    assert take(channel, text).problem == ""
    assert score(channel, session_id) is None


@pytest.mark.parametrize("choice", ["rate:0", "rate:6", "rate:55", "rate:"])
def test_forged_score_is_none(channel: Channel, staff: Staff, choice: str) -> None:
    session_id = begin(channel)
    close(channel, session_id, staff)
    assert take(channel, choice=choice).problem == "choice_over"
    assert score(channel, session_id) is None


def test_score_that_is_none_of_the_scale_is_refused(channel: Channel, staff: Staff) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(channel.deployment, actor="user:test", rating="thumbs")
    session_id = begin(channel)
    close(channel, session_id, staff)
    assert take(channel, choice="rate:3").problem == "choice_over"


def test_press_of_a_stranger_rates_nothing(channel: Channel, staff: Staff) -> None:
    session_id = begin(channel)
    close(channel, session_id, staff)
    assert take(channel, choice="rate:1", peer="+491700000666").problem == "choice_over"
    assert score(channel, session_id) is None


def test_question_is_asked_once(channel: Channel, recorder: Recorder, staff: Staff) -> None:
    session_id = begin(channel)
    for _ in range(2):
        close(channel, session_id, staff)
        with tenant_scope(channel.tenant_id):
            reopen(session_id, staff)
    assert recorder.texts == ["How was this conversation?"]


@pytest.mark.parametrize("why", ["not offered", "opted out", "long ago", "rated", "wrote again"])
def test_question_is_left_out(channel: Channel, recorder: Recorder, staff: Staff, why: str) -> None:
    session_id = begin(channel)
    match why:
        case "not offered":
            with tenant_scope(channel.tenant_id):
                offers.change(channel.deployment, actor="user:test", rating="")
        case "opted out":
            take(channel, "stop")
        case "long ago":
            with tenant_scope(channel.tenant_id):
                ChannelThread.objects.update(last_received_at=now() - timedelta(hours=24))
        case "rated":
            take(channel, choice="rate:4")
            deliver(channel)
            recorder.sent.clear()
        case "wrote again":
            with tenant_scope(channel.tenant_id):
                resolve(session_id, staff)
            take(channel, "Wait")
    close(channel, session_id, staff)
    assert recorder.texts == []
