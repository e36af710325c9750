"""Whatever fails permanently, in any room, notifies a person once, with a button; by email too, if they chose it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.urls import reverse

from apps.approvals.cards import alerts
from apps.approvals.enums import AlertWay
from apps.approvals.models import AlertChoice
from apps.autonomy.models import Notification, Outbox
from apps.autonomy.services import notices
from apps.bus import registry, services
from apps.bus.enums import Kind, Queue, SetAside
from apps.bus.models import QueueMessage
from apps.bus.signals import set_aside
from apps.console.pages.queues.views import KIND_NAMES
from apps.sessions.models import ChatSession
from kernel.tenancy import tenant_scope
from tests.bus.test_dead_letters import bury
from tests.factories.autonomy import House
from tests.factories.bus import let_waits_pass, make_message
from tests.factories.console import browser
from tests.factories.sessions import make_session
from tests.factories.tenants import make_member
from tests.work.drained import drain_as_a_worker

DOCS = Path(__file__).parents[2] / "docs" / "alerts.md"


def notices_of(house: House) -> list[tuple[str, str]]:
    with tenant_scope(house.tenant):
        return list(Notification.objects.order_by("created_at").values_list("about", "reason"))


def bury_message(house: House, kind: Kind, **fields: Any) -> QueueMessage:
    """A message of this kind as its sender made it, which fails permanently."""
    with tenant_scope(house.tenant):
        row: QueueMessage = QueueMessage.objects.create(
            queue=fields.pop("queue", Queue.EXECUTOR),
            kind=kind,
            message_id=str(uuid4()),
            trace_id="t",
            scope_id=fields.pop("scope_id", str(uuid4())),
            sender="runtime",
            taint="external",
            position=0,
            **fields,
        )
        lease = services.lease(row.queue, consumer="test", scope_id=row.scope_id)
        assert lease is not None
        services.dead_letter(lease, "poison")
    return row


def subject_for(house: House, kind: Kind) -> dict[str, Any]:
    """The subject of a message of this kind, where its dead-letter handler needs one."""
    if kind == Kind.USER_MESSAGE:
        return {"queue": Queue.PROXY, "scope_id": str(make_session(house.deployment).pk), "payload": {"seq": 1}}
    if kind == Kind.AUTONOMOUS_SESSION:
        return {"payload": {"session": str(house.run_now(house.task(max_attempts=1)).pk)}}
    return {"payload": {"event": "x"}}


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_message_that_fails_for_good_tells_a_person(house: House, kind: Kind) -> None:
    bury_message(house, kind, **subject_for(house, kind))
    with tenant_scope(house.tenant):
        wanted = ChatSession.objects.filter(wanted_person_at__isnull=False).count()
        assert Notification.objects.count() + wanted == 1


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_a_name_on_the_page_of_queues_and_a_line_in_the_docs(house: House, kind: Kind) -> None:
    assert KIND_NAMES[kind]
    assert f"| `{kind.value}` |" in DOCS.read_text()


@pytest.mark.parametrize("what", list(SetAside))
def test_everything_that_can_be_set_aside_has_a_place_to_press_and_a_line_in_the_docs(
    house: House, what: SetAside
) -> None:
    with tenant_scope(house.tenant):
        set_aside(what, "system")
        line = notices.line_for(Notification.objects.get())
    assert line.title == what.label
    assert browser(house.owner).get(line.path).status_code == 200
    assert f"| `{what.value}` |" in DOCS.read_text()


def test_every_consumer_of_the_registry_has_a_kind_that_tells(house: House) -> None:
    assert {kind for _, kind in registry._consumers} <= set(Kind)


def test_dead_letter_of_a_dead_letter_page_opens_whatever_its_kind(house: House) -> None:
    for kind in (Kind.REVIEW_OWED, Kind.CONNECTION_OWED):
        bury_message(house, kind, payload={"event": "x"})
    assert browser(house.owner).get(reverse("console-queues")).status_code == 200


def test_many_dead_letters_are_one_notice_that_counts_until_it_is_read(house: House) -> None:
    for _ in range(4):
        bury(house.tenant, scope_id=str(uuid4()))
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    assert notice.counts == {"times": 4}
    assert notice.user_id is None
    browser(house.owner).post(reverse("console-notice-read", args=[notice.pk]))
    bury(house.tenant, scope_id=str(uuid4()))
    assert notices_of(house) == [("message", ""), ("message", "")]


@pytest.mark.parametrize("actor", ["user:1", "user:", "goal:1", "visitor"])
def test_what_nobody_here_asked_for_is_told_to_the_owners(house: House, actor: str) -> None:
    with tenant_scope(house.tenant):
        set_aside(SetAside.DOCUMENT, actor)
        assert Notification.objects.get().user_id is None


def test_what_a_member_handed_in_is_told_to_that_member(house: House) -> None:
    member = make_member(house.tenant, "approver")
    with tenant_scope(house.tenant):
        set_aside(SetAside.DOCUMENT, member.actor)
        assert Notification.objects.get().user_id == member.pk


def test_owners_see_what_was_set_aside_and_are_led_to_where_it_is_tried_again(house: House) -> None:
    bury(house.tenant)
    client = browser(house.owner)
    page = client.get(reverse("console-notices")).content.decode()
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    answer = client.post(reverse("console-notice-read", args=[notice.pk]))
    assert "Work failed for good" in page
    assert "Retry or drop it" in page
    assert answer.headers["Location"] == reverse("console-queues")


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_members_who_are_no_owners_neither_see_nor_read_what_owners_are_told(house: House, role: str) -> None:
    bury(house.tenant)
    client = browser(make_member(house.tenant, role))
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    assert "Work failed for good" not in client.get(reverse("console-notices")).content.decode()
    assert client.post(reverse("console-notice-read", args=[notice.pk])).status_code == 404


def test_teller_that_raises_stops_no_sweep_and_owners_are_told_instead(house: House) -> None:
    bury_message(house, Kind.AUTONOMOUS_SESSION, payload={"session": "no id"})
    fine = make_message(house.tenant, scope_id="fine")
    with tenant_scope(house.tenant):
        services.expire_leases()
        lease = services.lease("executor", consumer="test", scope_id="fine")
    assert lease is not None
    assert lease.message.pk == fine.pk
    assert notices_of(house) == [("message", "")]


def test_worker_tells_owners_with_its_own_rights(house: House) -> None:
    make_message(house.tenant, kind=Kind.SYSTEM_EVENT, payload={"event": "cycle", "due_at": "never"})
    with tenant_scope(house.tenant):
        QueueMessage.objects.update(attempts=4)
    drain_as_a_worker(house.tenant)
    assert notices_of(house) == [("message", "")]


# By letter


@pytest.fixture
def letters(settings: Any) -> list[Any]:
    settings.EMAIL_HOST = "mail.test"
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.PASSKEY_ORIGIN = "https://console.example"
    mail.outbox = []
    sent: list[Any] = mail.outbox
    return sent


def choose(house: House, user: Any, way: AlertWay = AlertWay.EMAIL) -> None:
    house.do(alerts.set_alert_choice, user, way=way, minutes=5)


def pass_minutes(house: House, minutes: int) -> None:
    let_waits_pass(house.tenant)
    with tenant_scope(house.tenant):
        for notice in Notification.objects.all():
            Notification.objects.filter(pk=notice.pk).update(created_at=notice.created_at - timedelta(minutes=minutes))
        for choice in AlertChoice.objects.exclude(mailed_at=None):
            AlertChoice.objects.filter(pk=choice.pk).update(mailed_at=choice.mailed_at - timedelta(minutes=minutes))


def send(house: House, minutes: int = 0) -> None:
    """Once to split the owners' email into one for each, once for each of these."""
    pass_minutes(house, minutes)
    house.work(Queue.TRUSTED)
    pass_minutes(house, 0)
    house.work(Queue.TRUSTED)


def stopped(house: House) -> Any:
    return house.through(house.task(name="Look", limits={"calls": 2}, route={"kind": "notify"}))


def test_bad_end_is_told_by_letter_with_what_to_press(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    stopped(house)
    house.work(Queue.TRUSTED)
    send(house, 6)
    (letter,) = letters
    assert letter.to == [house.owner.email]
    assert letter.subject == "Look: Stopped: call limit reached"
    assert "Raise the limit and continue: https://console.example/console/review/" in letter.body


def test_letter_waits_as_long_as_the_member_chose(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    stopped(house)
    send(house, 4)
    assert letters == []
    send(house, 2)
    assert len(letters) == 1


def test_notice_that_was_read_meanwhile_sends_no_letter(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    stopped(house)
    house.do(lambda: notices.mark_all_read(user=house.owner))
    send(house, 6)
    assert letters == []


@pytest.mark.parametrize("chosen", [False, True])
def test_member_who_chose_no_alerts_gets_no_letter(house: House, letters: list[Any], chosen: bool) -> None:
    if chosen:
        choose(house, house.owner, AlertWay.OFF)
    stopped(house)
    send(house, 6)
    assert letters == []


def test_end_is_told_by_letter_once(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    stopped(house)
    send(house, 6)
    send(house, 60)
    assert len(letters) == 1


def test_many_bad_ends_are_one_letter(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    for number in range(3):
        house.through(house.task(name=f"Look {number}", limits={"calls": 2}, route={"kind": "notify"}))
    send(house, 6)
    send(house, 60)
    (letter,) = letters
    assert letter.subject == "3 notices for you"
    assert [f"Look {number}" in letter.body for number in range(3)] == [True, True, True]


def test_success_sends_no_letter(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    house.through(house.task(route={"kind": "notify"}))
    send(house, 6)
    assert [letter.subject for letter in letters] == []


def test_dead_letter_reaches_every_owner_who_chose_letters_and_nobody_else(house: House, letters: list[Any]) -> None:
    second, approver = make_member(house.tenant, "owner"), make_member(house.tenant, "approver")
    for user in (house.owner, second, approver):
        choose(house, user)
    make_member(house.tenant, "owner")
    bury(house.tenant)
    send(house, 6)
    assert sorted(letter.to[0] for letter in letters) == sorted([house.owner.email, second.email])
    assert all("Retry or drop it: https://console.example/console/queues/" in each.body for each in letters)


def test_letter_says_nothing_of_what_was_in_the_message(house: House, letters: list[Any]) -> None:
    choose(house, house.owner)
    bury(house.tenant, content="my card number is 4111")
    send(house, 6)
    (letter,) = letters
    assert "4111" not in letter.subject + letter.body


def test_former_member_gets_no_letter(house: House, letters: list[Any], other_tenant: Any) -> None:
    choose(house, house.owner)
    stopped(house)
    with tenant_scope(house.tenant):
        house.owner.memberships.all().delete()
    send(house, 6)
    assert letters == []


def test_webhook_that_was_given_up_tells_the_owners(house: House) -> None:
    from apps.autonomy.services import outbox, webhooks

    house.do(webhooks.save_webhook, "https://hooks.example.com/x", user=house.owner, events=[])
    house.through(house.task())
    with tenant_scope(house.tenant):
        for row in Outbox.objects.filter(state="waiting"):
            outbox.mark_failed(row, "http_410", permanent=True)
    assert ("webhook", "") in notices_of(house)
