"""Webhooks at providers follow their channels: removed with them, set again, and never another channel's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from apps.bus.enums import Kind, State
from apps.bus.models import QueueMessage
from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel
from apps.messengers.services import change_channel, connect, remove_channel
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messenger_providers import Telegram, Twilio, serving
from tests.factories.messengers import make_channel

VALUES = {ChannelKind.TELEGRAM: {"token": Telegram.token}, ChannelKind.SMS: Twilio.values}


@pytest.fixture(params=[Telegram, Twilio], ids=["telegram", "sms"])
def provider(request: pytest.FixtureRequest, database: None) -> Iterator[Any]:
    with serving(request.param()) as running:
        yield running


@pytest.fixture
def channel(provider: Any, deployment: Any) -> Channel:
    return connected(provider, deployment)


def connected(provider: Any, deployment: Any) -> Channel:
    channel = make_channel(deployment, provider.kind, **VALUES[provider.kind])
    asyncio.run(connect(channel.tenant_id, channel.pk, webhook=address(channel), actor="user:test"))
    assert provider.webhook == address(channel)
    return channel


def address(channel: Channel) -> str:
    return f"https://chat.example.com/channels/{channel.kind}/{channel.public_id}"


def turn(channel: Channel, *, on: bool) -> None:
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", enabled=on)


def remove(channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        remove_channel(channel.pk, actor="user:test")


def settle(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def problem(channel: Channel) -> str:
    with tenant_scope(channel.tenant_id):
        return Channel.objects.get(pk=channel.pk).problem


def jobs(channel: Channel) -> list[QueueMessage]:
    with tenant_scope(channel.tenant_id):
        return list(QueueMessage.objects.filter(kind=Kind.CHANNEL_DELIVERY).order_by("position"))


def test_webhook_is_removed_with_the_channel_and_nothing_of_its_secrets_stays(provider: Any, channel: Channel) -> None:
    remove(channel)
    assert provider.webhook == address(channel)  # not inside the transaction
    settle(channel)
    assert provider.webhook == ""
    (job,) = jobs(channel)
    assert job.state == State.ACKED
    assert job.payload is None


def test_webhook_is_removed_while_the_channel_is_off(provider: Any, channel: Channel) -> None:
    turn(channel, on=False)
    settle(channel)
    assert provider.webhook == ""
    turn(channel, on=True)
    settle(channel)
    assert provider.webhook == address(channel)


def test_channel_that_was_turned_on_meanwhile_keeps_its_webhook(provider: Any, channel: Channel) -> None:
    turn(channel, on=False)
    turn(channel, on=True)
    settle(channel)
    settle(channel)
    assert provider.webhook == address(channel)


def test_other_changes_tell_the_provider_nothing(provider: Any, channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", name="Another name")
    assert jobs(channel) == []


def test_webhook_of_a_channel_that_was_added_anew_stays(provider: Any, channel: Channel, deployment: Any) -> None:
    remove(channel)
    anew = connected(provider, deployment)
    settle(channel)
    assert provider.webhook == address(anew)


def test_failure_is_shown_and_tried_again(provider: Any, channel: Channel) -> None:
    turn(channel, on=False)
    provider.refusals = [(503, {})]
    settle(channel)
    assert provider.webhook == address(channel)
    assert problem(channel) == "http_503"
    assert jobs(channel)[0].state == State.QUEUED
    settle(channel)
    assert provider.webhook == ""
    assert problem(channel) == ""


def test_credentials_that_were_taken_back_need_no_removal(provider: Any, channel: Channel) -> None:
    remove(channel)
    provider.refusals = [(401, {"ok": False, "code": 20003})]
    settle(channel)
    assert jobs(channel)[0].state == State.ACKED
    assert jobs(channel)[0].payload is None
