"""Streams of events: what a program receives, what it never does, and how it resumes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections

from apps.events.catalogue import CATALOGUE
from apps.events.models import Event
from apps.events.services import delete_old_events, emit
from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from apps.tenants.services import create_api_key
from kernel.clock import now
from kernel.tenancy import savepoint, tenant_scope
from tests.events.conftest import WAIT_SECONDS, Reader, Web
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_tenant


@dataclass
class House:
    tenant: Any
    session: ChatSession

    def key(self, *scopes: KeyScope) -> str:
        with tenant_scope(self.tenant):
            return create_api_key("Events", scopes=scopes).key

    def emit(self, count: int = 1) -> None:
        with tenant_scope(self.tenant):
            for number in range(count):
                emit("card.created", card=str(uuid4()), kind="gate", state="open", risk="low", number=number)

    def seqs(self) -> list[int]:
        with tenant_scope(self.tenant):
            return list(Event.objects.values_list("seq", flat=True))

    def types(self) -> list[str]:
        with tenant_scope(self.tenant):
            return list(Event.objects.values_list("type", flat=True))


def make_house() -> House:
    tenant = make_tenant()
    return House(tenant, make_session(make_deployment(tenant)))


@pytest.fixture
def house(database: None) -> House:
    return make_house()


@pytest.fixture
def readers() -> Iterator[list[Reader]]:
    opened: list[Reader] = []
    yield opened
    for reader in opened:
        reader.close()


def test_message_arrives_with_its_words_and_reaches_no_other_company(
    house: House, web: Web, readers: list[Reader]
) -> None:
    other = make_house()
    mine, theirs = Reader(web.url, house.key()), Reader(web.url, other.key())
    limited = Reader(web.url, house.key(KeyScope.CARDS_READ))
    readers += [mine, theirs, limited]
    assert mine.status == 200
    assert mine.headers["content-type"].startswith("text/event-stream")
    say(house.session, "Where is my order?")
    other.emit()
    house.emit()
    got = [mine.next() for _ in range(3)]
    assert [kind for _, kind, _ in got] == ["conversation.created", "message.created", "card.created"]
    assert [seq for seq, _, _ in got] == [1, 2, 3]
    message = got[1][2]
    assert message["data"]["text"] == "Where is my order?"
    assert message["data"]["session"] == str(house.session.pk)
    assert message["data"]["deployment"] == str(house.session.deployment_id)
    assert message["id"].startswith("evt_")
    # The first event of each of these two is the first that it may receive.
    assert theirs.next()[1] == "card.created"
    assert limited.next()[0] == 3
    with tenant_scope(house.tenant):
        assert "Where is my order?" not in str(list(Event.objects.values()))


@pytest.mark.parametrize(
    ("params", "scopes", "status", "code"),
    [
        ({"types": "message.*"}, [KeyScope.CARDS_READ], 403, "forbidden_scope"),
        ({}, [KeyScope.INSIGHTS_READ], 403, "forbidden_scope"),
        ({"types": "mesage.created"}, [], 400, "invalid"),
        ({"type": "message.created"}, [], 400, "invalid"),
        ({"session": "1"}, [], 400, "invalid"),
        ({"after": "7"}, [], 410, "events_gone"),
    ],
)
def test_stream_that_may_not_be_read_is_refused(
    house: House, web: Web, params: dict[str, str], scopes: list[KeyScope], status: int, code: str
) -> None:
    refused = Reader(web.url, house.key(*scopes), params)
    assert refused.status == status
    assert refused.refusal["code"] == code
    assert Reader(web.url, "sk_forged", params).status == 401


def test_stream_resumes_after_its_web_process_was_killed(web: Web, database: None, readers: list[Reader]) -> None:
    house = make_house()
    key = house.key()
    first = Reader(web.url, key)
    readers.append(first)
    house.emit(3)
    seen = [first.next()[0] for _ in range(3)]
    web.kill()
    assert first.ended.wait(WAIT_SECONDS)
    house.emit(700)
    web.start()
    second = Reader(web.url, key, last_id=first.last_id)
    readers.append(second)
    house.emit(2)
    seen += [second.next()[0] for _ in range(702)]
    assert seen == list(range(1, 706))
    with pytest.raises(queue.Empty):
        second.next(0.5)


def test_streams_are_counted_and_end_with_their_key(house: House, web: Web, readers: list[Reader]) -> None:
    keys = [house.key() for _ in range(4)]
    readers += [Reader(web.url, key) for key in keys]
    refused = Reader(web.url, keys[0])
    assert refused.status == 429
    assert refused.refusal["code"] == "rate_limited"
    assert int(refused.headers["retry-after"]) > 0
    with tenant_scope(house.tenant):
        newest = ApiKey.objects.order_by("-created_at").first()
        assert newest is not None
        ApiKey.objects.filter(pk=newest.pk).update(revoked_at=now())
    assert readers[3].ended.wait(WAIT_SECONDS)
    assert not readers[0].ended.is_set()
    until = time.monotonic() + WAIT_SECONDS
    while (again := Reader(web.url, keys[0])).status == 429 and time.monotonic() < until:
        time.sleep(0.2)
    readers.append(again)
    assert again.status == 200


def test_ids_that_retention_deleted_are_gone(house: House, web: Web, readers: list[Reader]) -> None:
    house.emit(5)
    with tenant_scope(house.tenant):
        Event.objects.filter(seq__lte=3).update(created_at=now() - timedelta(days=90))
        assert delete_old_events() is False
    assert house.seqs() == [4, 5]
    gone = Reader(web.url, house.key(), last_id="2")
    assert gone.status == 410
    assert gone.refusal["code"] == "events_gone"
    kept = Reader(web.url, house.key(), last_id="3")
    readers.append(kept)
    assert [kept.next()[0], kept.next()[0]] == [4, 5]


def test_numbers_follow_the_order_of_commits(house: House) -> None:
    """A number is given under a lock that is held until the commit: nobody commits a higher one before it."""
    entered, release, order = threading.Event(), threading.Event(), []

    def slow() -> None:
        with connections["default"].cursor():
            pass
        from django.db import transaction

        with transaction.atomic():
            with tenant_scope(house.tenant):
                emit("card.created", card="slow", kind="gate", state="open", risk="low")
            entered.set()
            assert release.wait(WAIT_SECONDS)
            order.append("slow")
        connections["default"].close()

    def fast() -> None:
        with tenant_scope(house.tenant):
            emit("card.created", card="fast", kind="gate", state="open", risk="low")
        order.append("fast")
        connections["default"].close()

    threads = [threading.Thread(target=slow), threading.Thread(target=fast)]
    threads[0].start()
    assert entered.wait(WAIT_SECONDS)
    threads[1].start()
    threads[1].join(0.5)
    assert threads[1].is_alive()
    release.set()
    for thread in threads:
        thread.join(WAIT_SECONDS)
    with tenant_scope(house.tenant):
        cards = [row.data["card"] for row in Event.objects.all()]
    assert cards == ["slow", "fast"]


def test_what_did_not_happen_is_not_told(house: House) -> None:
    with tenant_scope(house.tenant):
        try:
            with savepoint():
                emit("card.created", card="undone", kind="gate", state="open", risk="low")
                raise RuntimeError
        except RuntimeError:
            pass
        ChatSession.objects.filter(pk=house.session.pk).update(is_test=True)
        with pytest.raises(KeyError):
            emit("card.invented")
    say(house.session, "Only a test")
    assert house.types() == []


def test_every_type_is_documented() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
    for each in CATALOGUE.values():
        assert f"| `{each.name}` | {each.description} | `{each.scope.value}` |" in text
