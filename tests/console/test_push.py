"""Alerts about new cards: sent once, in the chosen way, without any of the visitor's text.

The push service here is a server that decrypts messages as a browser would.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core import mail
from django.db.models import F
from django.urls import reverse

from apps.approvals.cards import alerts, webpush
from apps.approvals.cards.alerts import AlertEmail, Push
from apps.approvals.cards.lifecycle import record_look
from apps.approvals.cards.quiet_hours import QuietHours
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import AlertWay, Risk
from apps.approvals.models import AlertChoice, Card, PushSubscription
from apps.approvals.queries import face_hash
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from kernel.timezones import get_timezone
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.console import browser, make_card
from tests.factories.work import Hands
from tests.rivals import race


class Device:
    """A browser's half of a subscription."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = b"0123456789abcdef"

    @property
    def keys(self) -> dict[str, str]:
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {"p256dh": _text(point), "auth": _text(self.auth)}

    def read(self, body: bytes) -> dict[str, Any]:
        """As a browser does (RFC 8291, 3.4; RFC 8188): salt, record size, length of the key, key, one record."""
        salt, theirs, sealed = body[:16], body[21 : 21 + body[20]], body[21 + body[20] :]
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs))
        mine = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        both = _derived(self.auth, b"WebPush: info\0" + mine + theirs, 32, shared)
        key, nonce = (
            _derived(salt, b"Content-Encoding: " + name + b"\0", length, both)
            for name, length in ((b"aes128gcm", 16), (b"nonce", 12))
        )
        read: dict[str, Any] = json.loads(AESGCM(key).decrypt(nonce, sealed, None).rstrip(b"\0")[:-1])
        return read


def _derived(salt: bytes, info: bytes, length: int, secret: bytes) -> bytes:
    return HKDF(SHA256(), length, salt=salt, info=info).derive(secret)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@contextmanager
def push_service(status: int = 201) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    got: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/p/{uuid4().hex}", got
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _secrets(settings: Any) -> None:
    settings.SILAS_SECRETS_KEY = "a-secrets-key"
    settings.EMAIL_HOST = "mail.example.test"


def subscribe(
    tenant: Any, user: Any, endpoint: str = "https://push.example.com/1", device: Device | None = None
) -> Any:
    with tenant_scope(tenant):
        return alerts.subscribe(user, endpoint=endpoint, browser="Firefox", **(device or Device()).keys)


def make_lasting(tenant: Any, **fields: Any) -> Card:
    """A card that is still open when its email is due."""
    card = make_card(tenant, **fields)
    with tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(expires_at=now() + timedelta(hours=2))
    return card


def age(tenant: Any, card: Card, by: timedelta) -> None:
    """As if the card, and what its members chose before it, were so much older."""
    with tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(created_at=F("created_at") - by)
        AlertChoice.objects.update(mailed_until=F("mailed_until") - by)


def choose(tenant: Any, user: Any, way: AlertWay, minutes: int = 10) -> None:
    with tenant_scope(tenant):
        alerts.set_alert_choice(user, way=way, minutes=minutes)


def due(tenant: Any, ahead: timedelta = timedelta(0)) -> list[Push | AlertEmail]:
    with tenant_scope(tenant):
        return alerts.claim_alerts(now() + ahead)


def send(tenant: Any) -> None:
    """As a worker does, now."""
    Hands(tenant).work(Queue.TRUSTED)


def waits(tenant: Any) -> list[timedelta]:
    """For how long the messages of cards wait."""
    with tenant_scope(tenant):
        rows = QueueMessage.objects.filter(kind="card_alert", state="queued")
        return [row.available_at - now() for row in rows]


def pushes(found: list[Push | AlertEmail]) -> list[dict[str, Any]]:
    return [one.payload for one in found if isinstance(one, Push)]


def letters(found: list[Push | AlertEmail]) -> list[dict[str, int]]:
    return [one.counts for one in found if isinstance(one, AlertEmail)]


LATER = timedelta(minutes=11)


def test_browser_reads_what_was_pushed(tenant: Any, approver: Any) -> None:
    device = Device()
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint, device)
        card = make_card(tenant)
        send(tenant)
    ((_, body),) = got
    assert device.read(body) == {"count": 1, "risk": "low", "url": f"/console/review/{card.pk}/"}


def test_push_is_signed_for_its_service(tenant: Any, approver: Any) -> None:
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint)
        make_card(tenant)
        send(tenant)
    ((headers, _),) = got
    token, _, key = headers["Authorization"].removeprefix("vapid t=").partition(", k=")
    point = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    claims = jwt.decode(token, public, algorithms=["ES256"], audience=endpoint.rpartition("/p/")[0])
    assert claims["sub"].startswith("mailto:")  # fmt: skip
    assert headers["Content-Encoding"] == "aes128gcm"
    assert key == webpush.public_key()


def test_key_of_an_installation_stays_and_is_its_own(settings: Any) -> None:
    mine = webpush.public_key()
    again = webpush.public_key()
    settings.SILAS_SECRETS_KEY = "another"
    assert mine == again
    assert mine != webpush.public_key()


def test_nothing_is_signed_without_a_secrets_key(settings: Any) -> None:
    settings.SILAS_SECRETS_KEY = ""
    with pytest.raises(SilasError):
        webpush.public_key()


@pytest.mark.parametrize("status", [404, 410])
def test_browser_that_is_gone_is_forgotten(tenant: Any, approver: Any, status: int) -> None:
    with push_service(status) as (endpoint, _):
        subscribe(tenant, approver, endpoint)
        make_card(tenant)
        send(tenant)
    with tenant_scope(tenant):
        assert not PushSubscription.objects.exists()


def test_browser_whose_service_fails_stays(tenant: Any, approver: Any) -> None:
    with push_service(500) as (endpoint, _):
        subscribe(tenant, approver, endpoint)
        make_card(tenant)
        send(tenant)
    with tenant_scope(tenant):
        assert PushSubscription.objects.exists()


def test_service_inside_the_house_is_never_called(tenant: Any, approver: Any, settings: Any) -> None:
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint)
        settings.WEBHOOKS_PRIVATE = False
        make_card(tenant)
        send(tenant)
    assert got == []


@pytest.mark.parametrize(
    "endpoint",
    ["http://push.example.com/1", "https://127.0.0.1/1", "https://[::1]/1", "https://db/1", "https://2130706433/", "x"],
)
def test_address_inside_the_house_is_refused(tenant: Any, approver: Any, settings: Any, endpoint: str) -> None:
    settings.WEBHOOKS_PRIVATE = False
    with pytest.raises(SilasError) as refused:
        subscribe(tenant, approver, endpoint)
    assert refused.value.code == "push_address"


@pytest.mark.parametrize(
    "keys", [{"p256dh": "", "auth": ""}, {"p256dh": "AAAA", "auth": "AAAA"}, {"p256dh": "é", "auth": "x" * 22}]
)
def test_keys_of_no_browser_are_refused(tenant: Any, approver: Any, keys: dict[str, str]) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        alerts.subscribe(approver, endpoint="https://push.example.com/1", browser="", **keys)
    assert refused.value.code == "push_keys"


def test_card_is_pushed_once(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_card(tenant)
    assert [len(pushes(due(tenant))), len(pushes(due(tenant)))] == [1, 0]


def test_card_from_before_is_not_pushed(tenant: Any, approver: Any) -> None:
    make_card(tenant)
    subscribe(tenant, approver)
    assert due(tenant) == []


def test_card_that_was_committed_late_is_pushed(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_card(tenant)
    due(tenant)
    late = make_card(tenant)
    with tenant_scope(tenant):
        Card.objects.filter(pk=late.pk).update(created_at=now() - timedelta(seconds=20))
    assert [said["url"] for said in pushes(due(tenant, timedelta(seconds=alerts.PUSH_SECONDS)))] == [
        f"/console/review/{late.pk}/"
    ]


def test_many_cards_at_once_are_one_push(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    for risk in (Risk.LOW, Risk.HIGH, Risk.LOW, Risk.LOW):
        make_card(tenant, risk=risk)
    assert pushes(due(tenant)) == [{"count": 4, "risk": "high", "url": "/console/review/"}]


@pytest.mark.parametrize("way", [AlertWay.OFF, AlertWay.EMAIL])
def test_whoever_wants_no_push_gets_none(tenant: Any, approver: Any, way: AlertWay) -> None:
    subscribe(tenant, approver)
    choose(tenant, approver, way)
    make_card(tenant)
    assert pushes(due(tenant)) == []


def test_whoever_asked_for_it_themselves_is_not_told(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_card(tenant, requested_by=f"user:{approver.pk}")
    assert due(tenant) == []


def test_whoever_decides_no_more_is_not_told(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    with tenant_scope(tenant):
        Membership.objects.filter(user=approver).update(role="viewer")
    make_card(tenant)
    assert due(tenant) == []


def test_whoever_cannot_log_in_is_not_told(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    type(approver).objects.filter(pk=approver.pk).update(is_active=False)
    make_card(tenant)
    assert due(tenant) == []


def test_another_tenants_card_is_not_told(tenant: Any, other_tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_card(other_tenant)
    assert due(tenant) == []
    assert due(other_tenant) == []


def test_letter_follows_when_nobody_looked(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_lasting(tenant)
    make_lasting(tenant, risk=Risk.HIGH)
    assert letters(due(tenant, LATER)) == [{"low": 1, "high": 1}]


def test_no_letter_before_its_minutes(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL)
    make_lasting(tenant)
    assert due(tenant, timedelta(minutes=9)) == []


def test_no_letter_to_whoever_looked(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL)
    card = make_lasting(tenant)
    with tenant_scope(tenant):
        record_look(card, approver)
    assert due(tenant, LATER) == []


def test_no_letter_about_what_was_decided(tenant: Any, approver: Any, owner: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL)
    card = make_lasting(tenant)
    with tenant_scope(tenant):
        answer_card(card.pk, user=owner, choice="decline", face=face_hash(card))
    assert due(tenant, LATER) == []


def test_letter_goes_once(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL)
    make_lasting(tenant)
    assert [len(due(tenant, LATER)), len(due(tenant, LATER + timedelta(minutes=20)))] == [1, 0]


def test_one_letter_in_ten_minutes(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=1)
    make_lasting(tenant)
    first = due(tenant, timedelta(minutes=2))
    make_lasting(tenant)
    found = [len(one) for one in (first, due(tenant, timedelta(minutes=8)), due(tenant, timedelta(minutes=13)))]
    assert found == [1, 0, 1]


def test_letter_holds_how_grave_and_where_and_no_more(tenant: Any, approver: Any, settings: Any) -> None:
    settings.PASSKEY_ORIGIN = "https://console.example.com"
    choose(tenant, approver, AlertWay.EMAIL)
    card = make_lasting(tenant)
    age(tenant, card, LATER)
    send(tenant)
    (letter,) = mail.outbox
    body = "low risk: 1\n\nDecide: https://console.example.com/console/review/\n"
    assert letter.to == [approver.email]
    assert letter.body == body


def test_card_of_which_nobody_wants_to_hear_owes_nothing_more(tenant: Any) -> None:
    make_lasting(tenant)
    send(tenant)
    assert waits(tenant) == []


def test_card_waits_for_its_letter_and_for_nothing_else(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=30)
    make_lasting(tenant)
    send(tenant)
    (wait,) = waits(tenant)
    assert timedelta(minutes=29) < wait <= timedelta(minutes=30)


def test_letter_leaves_when_its_card_has_waited(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=30)
    card = make_lasting(tenant)
    send(tenant)
    age(tenant, card, timedelta(minutes=31))
    let_waits_pass(tenant)
    send(tenant)
    assert len(mail.outbox) == 1
    assert waits(tenant) == []


def test_member_who_chooses_fewer_minutes_is_told_sooner(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=30)
    make_lasting(tenant)
    send(tenant)
    choose(tenant, approver, AlertWay.EMAIL, minutes=1)
    send(tenant)
    (wait,) = waits(tenant)
    assert wait <= timedelta(minutes=1)


def test_card_that_was_decided_owes_no_letter(tenant: Any, approver: Any, owner: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=30)
    card = make_lasting(tenant)
    send(tenant)
    with tenant_scope(tenant):
        answer_card(card.pk, user=owner, choice="decline", face=face_hash(card))
    let_waits_pass(tenant)
    send(tenant)
    assert waits(tenant) == []


def test_cards_that_come_after_a_push_are_told_together_a_moment_later(tenant: Any, approver: Any) -> None:
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint)
        make_lasting(tenant)
        send(tenant)
        for _ in range(alerts.MAX_PUSHES + 1):
            make_lasting(tenant)
        send(tenant)
        assert len(got) == 1
        assert min(waits(tenant)) <= timedelta(seconds=alerts.PUSH_SECONDS)
        with tenant_scope(tenant):
            AlertChoice.objects.update(pushed_until=F("pushed_until") - timedelta(seconds=alerts.PUSH_SECONDS))
        let_waits_pass(tenant)
        send(tenant)
    assert len(got) == 2


def test_of_rivals_one_tells_of_a_card(tenant: Any, approver: Any) -> None:
    with push_service() as (endpoint, got):
        subscribe(tenant, approver, endpoint)
        make_lasting(tenant)
        race(*[lambda: send(tenant)] * 3)
    assert len(got) == 1


def test_card_whose_teller_died_is_told_by_letter(tenant: Any, approver: Any) -> None:
    """It had noted the push and not sent it."""
    subscribe(tenant, approver)
    card = make_lasting(tenant)
    with tenant_scope(tenant):
        lease_any(Queue.TRUSTED, consumer="doomed", scope_id=f"card_alert:{card.pk}")
    due(tenant)
    let_leases_run_out(tenant)
    send(tenant)
    age(tenant, card, LATER)
    let_waits_pass(tenant)
    send(tenant)
    assert len(mail.outbox) == 1


def test_choice_is_written_down(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL)
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event=AuditEvent.ALERTS_CHOSEN).data == '{"way":"email"}'


def test_telling_is_written_down_by_counts(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    make_card(tenant)
    due(tenant)
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event=AuditEvent.ALERTS_SENT).data == '{"letters":0,"pushes":1}'


def test_same_browser_is_subscribed_once(tenant: Any, approver: Any) -> None:
    subscribe(tenant, approver)
    subscribe(tenant, approver)
    with tenant_scope(tenant):
        assert PushSubscription.objects.count() == 1


def test_browser_belongs_to_whoever_subscribed_last(tenant: Any, approver: Any, owner: Any) -> None:
    """Two people share a machine: what is for one is not shown to the other."""
    subscribe(tenant, approver)
    subscribe(tenant, owner)
    with tenant_scope(tenant):
        assert [row.user_id for row in PushSubscription.objects.all()] == [owner.pk]


def test_browsers_are_bounded(tenant: Any, approver: Any) -> None:
    for number in range(alerts.MAX_BROWSERS):
        subscribe(tenant, approver, f"https://push.example.com/{number}")
    with pytest.raises(SilasError) as refused:
        subscribe(tenant, approver, "https://push.example.com/more")
    assert refused.value.code == "push_browsers"


def test_nobody_removes_another_members_browser(tenant: Any, approver: Any, owner: Any) -> None:
    row = subscribe(tenant, approver)
    with tenant_scope(tenant), pytest.raises(NotFound):
        alerts.unsubscribe(row.pk, user=owner)


ADDRESSES = ["console-alerts-choose", "console-push-add", "console-push-remove"]


def answer(client: Any, name: str, **data: str) -> Any:
    args = [uuid4()] if name == "console-push-remove" else []
    return client.post(reverse(name, args=args), data)


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize("who", ["agent", "viewer", "stranger"])
def test_only_deciders_are_told(name: str, who: str, request: Any) -> None:
    assert answer(browser(request.getfixturevalue(who)), name).status_code == 403


@pytest.mark.parametrize("name", [*ADDRESSES, "console-alerts-notices"])
def test_form_without_its_token_is_refused(name: str, approver: Any) -> None:
    assert answer(browser(approver, csrf=True), name).status_code == 403


def test_member_chooses_on_their_page(tenant: Any, approver: Any) -> None:
    answer(browser(approver), "console-alerts-choose", way="email", minutes="5")
    with tenant_scope(tenant):
        row = AlertChoice.objects.get()
    assert row.user_id == approver.pk
    assert row.way == "email"
    assert row.minutes == 5


@pytest.mark.parametrize("minutes", ["0", "1441", "x", ""])
def test_minutes_that_are_none_are_refused_beside_their_field(approver: Any, minutes: str) -> None:
    response = answer(browser(approver), "console-alerts-choose", way="email", minutes=minutes)
    assert response.status_code == 400
    assert "problem" in response.content.decode()


def test_browser_subscribes_on_the_page(tenant: Any, approver: Any) -> None:
    data = {"endpoint": "https://push.example.com/1", **Device().keys}
    client = browser(approver)
    client.post(reverse("console-push-add"), data, headers={"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/130"})
    assert "Firefox, Linux" in client.get(reverse("console-alerts")).content.decode()


def test_refusal_of_a_browser_is_coded(approver: Any) -> None:
    response = answer(browser(approver), "console-push-add", endpoint="nowhere")
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "push_address"


def test_browser_is_removed_on_the_page(tenant: Any, approver: Any) -> None:
    row = subscribe(tenant, approver)
    browser(approver).post(reverse("console-push-remove", args=[row.pk]))
    with tenant_scope(tenant):
        assert not PushSubscription.objects.exists()


def test_service_worker_answers_everybody_and_shows_alerts(database: None) -> None:
    response = browser().get(reverse("console-service-worker"))
    assert response["Content-Type"].startswith("text/javascript")
    assert response["Service-Worker-Allowed"] == "/console/"
    assert "notificationclick" in response.content.decode()


def test_way_of_an_address_is_not_shown(tenant: Any, approver: Any) -> None:
    """Anyone who knows a push service's address can send nonsense there."""
    subscribe(tenant, approver)
    assert "push.example.com" not in browser(approver).get(reverse("console-alerts")).content.decode()


def quiet(tenant: Any, user: Any, *, begins_in: int = -1, hours: int = 2) -> None:
    """Quiet hours of the member, which began an hour ago by default."""
    start = now().astimezone(get_timezone(tenant.timezone)) + timedelta(hours=begins_in)
    hours_of = QuietHours(start.time(), (start + timedelta(hours=hours)).time())
    with tenant_scope(tenant):
        alerts.set_notice_choice(user, sound=False, desktop=False, quiet_hours=hours_of)


class TestQuietHours:
    """No push and no email in a member's quiet hours; afterwards what still waits is told."""

    def test_push_waits_for_their_end(self, tenant: Any, approver: Any) -> None:
        subscribe(tenant, approver)
        quiet(tenant, approver)
        card = make_lasting(tenant)
        assert due(tenant) == []
        assert pushes(due(tenant, timedelta(minutes=61))) == [
            {"count": 1, "risk": "low", "url": f"/console/review/{card.pk}/"}
        ]

    def test_many_cards_are_one_push_and_one_email_afterwards(self, tenant: Any, approver: Any) -> None:
        subscribe(tenant, approver)
        quiet(tenant, approver)
        for _ in range(5):
            make_lasting(tenant)
        assert due(tenant, timedelta(minutes=30)) == []
        found = due(tenant, timedelta(minutes=61))
        assert [push["count"] for push in pushes(found)] == [5]
        assert letters(found) == [{"low": 5}]

    def test_what_was_decided_meanwhile_is_not_told(self, tenant: Any, approver: Any, owner: Any) -> None:
        subscribe(tenant, approver)
        quiet(tenant, approver)
        card = make_lasting(tenant)
        with tenant_scope(tenant):
            answer_card(card.pk, user=owner, choice="decline", face=face_hash(card))
        assert due(tenant, timedelta(minutes=61)) == []

    def test_job_of_a_card_waits_for_their_end(self, tenant: Any, approver: Any) -> None:
        choose(tenant, approver, AlertWay.EMAIL, minutes=5)
        quiet(tenant, approver)
        make_lasting(tenant)
        send(tenant)
        (wait,) = waits(tenant)
        assert timedelta(minutes=58) < wait <= timedelta(minutes=60)

    def test_member_who_ends_them_is_told_at_once(self, tenant: Any, approver: Any) -> None:
        with push_service() as (endpoint, got):
            subscribe(tenant, approver, endpoint)
            quiet(tenant, approver)
            make_lasting(tenant)
            send(tenant)
            assert got == []
            with tenant_scope(tenant):
                alerts.set_notice_choice(approver, sound=True, desktop=False, quiet_hours=None)
            send(tenant)
            assert len(got) == 1

    def test_colleague_is_told(self, tenant: Any, approver: Any, owner: Any) -> None:
        subscribe(tenant, approver)
        subscribe(tenant, owner, "https://push.example.com/2")
        quiet(tenant, approver)
        make_lasting(tenant)
        assert len(pushes(due(tenant))) == 1

    def test_agent_that_waits_is_not_pushed(self, tenant: Any, approver: Any) -> None:
        subscribe(tenant, approver)
        with tenant_scope(tenant):
            assert len(alerts.build_pushes([approver.pk], [{"risk": "high"}])) == 1
        quiet(tenant, approver)
        with tenant_scope(tenant):
            assert alerts.build_pushes([approver.pk], [{"risk": "high"}]) == []


NOTICES = {"sound": "on", "start": "22:00", "end": "07:00", "days": ["0", "4"]}


@pytest.mark.parametrize("who", ["owner", "approver", "agent"])
def test_who_answers_chooses_sound_desktop_and_quiet_hours(tenant: Any, who: str, request: Any) -> None:
    user = request.getfixturevalue(who)
    client = browser(user)
    assert client.post(reverse("console-alerts-notices"), NOTICES).status_code == 302
    with tenant_scope(tenant):
        row = AlertChoice.objects.get(user=user)
        assert json.loads(AuditEntry.objects.get(event=AuditEvent.ALERTS_CHOSEN).data) == {
            "sound": True,
            "desktop": False,
            "quiet_hours": True,
        }
    assert row.sound is True
    assert row.desktop is False
    assert row.quiet_hours == {"start": "22:00", "end": "07:00", "days": [0, 4]}
    assert row.way == AlertWay.OFF
    page = client.get(reverse("console-alerts")).content.decode()
    assert 'value="22:00"' in page
    assert tenant.timezone in page
    assert (reverse("console-alerts-choose") in page) is (who != "agent")


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_who_does_not_answer_has_no_notices(who: str, request: Any) -> None:
    client = browser(request.getfixturevalue(who))
    assert client.get(reverse("console-alerts")).status_code == 403
    assert client.post(reverse("console-alerts-notices"), NOTICES).status_code == 403


def test_without_times_there_are_no_quiet_hours(tenant: Any, agent: Any) -> None:
    client = browser(agent)
    client.post(reverse("console-alerts-notices"), NOTICES)
    client.post(reverse("console-alerts-notices"), {"desktop": "on"})
    with tenant_scope(tenant):
        row = AlertChoice.objects.get(user=agent)
    assert row.quiet_hours is None
    assert row.sound is False
    assert row.desktop is True


@pytest.mark.parametrize("wrong", [{"end": ""}, {"start": ""}, {"start": "25:00"}, {"days": []}, {"days": ["7"]}])
def test_half_quiet_hours_are_refused_beside_their_field(tenant: Any, agent: Any, wrong: dict[str, Any]) -> None:
    response = browser(agent).post(reverse("console-alerts-notices"), {**NOTICES, **wrong})
    assert response.status_code == 400
    assert response.content.decode().count('class="problem"') == 1
    with tenant_scope(tenant):
        assert not AlertChoice.objects.exists()


def test_choice_of_notices_leaves_that_of_alerts_alone(tenant: Any, approver: Any) -> None:
    choose(tenant, approver, AlertWay.EMAIL, minutes=5)
    browser(approver).post(reverse("console-alerts-notices"), NOTICES)
    with tenant_scope(tenant):
        row = AlertChoice.objects.get()
    assert row.way == AlertWay.EMAIL
    assert row.minutes == 5
