"""What the tests of all channels share: a channel that records, sending an entry out, and delivering what is owed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.bus.enums import Kind
from apps.messengers import ports
from apps.messengers.models import Channel
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messengers import Recorder

Say = Callable[..., None]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    adapter = Recorder()
    monkeypatch.setitem(ports._adapters, adapter.kind, adapter)
    return adapter


@pytest.fixture
def say() -> Say:
    """Record an answer in a conversation and carry out what is owed."""

    def _say(channel: Channel, session_id: Any, text: str, **more: Any) -> None:
        with tenant_scope(channel.tenant_id):
            chronicle.append(lock_session(session_id), kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text, **more)
        carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)

    return _say
