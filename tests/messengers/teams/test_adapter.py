"""Teams as a channel: tokens of the Bot Framework, threads, options, cards and addresses, against a stand-in."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client
from django.urls import reverse
from jwt.algorithms import RSAAlgorithm

from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from apps.bus.enums import Kind
from apps.messengers import services
from apps.messengers.cards import accounts
from apps.messengers.delivery import place_of
from apps.messengers.enums import ChannelKind, Direction
from apps.messengers.models import ApproverAccount, Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundOption
from apps.messengers.services import change_channel
from apps.messengers.teams import adapter
from apps.sessions.enums import Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChronicleEntry
from apps.visitors import files, offers
from apps.visitors.models import VisitorFile
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.cards import make_kind
from tests.factories.messengers import make_channel

APP, DIRECTORY = "app-1", "directory-1"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Teams:
    """`calls`: method, path and body of what the Bot Connector was asked. `files` by their path; `fetched`: the path
    and the authorization of what was asked for."""

    def __init__(self) -> None:
        self.origin = ""
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.endorsements = ["msteams"]
        self.files: dict[str, bytes] = {}
        self.fetched: list[tuple[str, str]] = []

    @property
    def published(self) -> dict[str, Any]:
        key = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
        return {"keys": [{**key, "kid": "one", "endorsements": self.endorsements}]}


@pytest.fixture
def teams(monkeypatch: pytest.MonkeyPatch) -> Iterator[Teams]:
    running = Teams()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/keys":
                self._send(200, running.published)
                return
            running.fetched.append((self.path, self.headers.get("Authorization", "")))
            content = running.files.get(self.path)
            self.send_response(200 if content else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path.endswith("/token"):
                good = b"client_secret=right" in raw
                told = {"access_token": "granted", "expires_in": 3600} if good else {"error": "invalid_client"}
                self._send(200 if good else 401, told)
            elif self.headers["Authorization"] != "Bearer granted":
                self._send(401, {})
            else:
                running.calls.append((self.command, self.path, json.loads(raw)))
                self._send(201, {"id": f"a-{len(running.calls)}"})

        do_PUT = do_POST

        def _send(self, status: int, body: dict[str, Any]) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    running.origin = f"http://127.0.0.1:{listener.server_address[1]}"
    for name, path in (("KEYS", "/keys"), ("LOGIN", ""), ("SERVICE", "/teams")):
        monkeypatch.setattr(adapter, name, f"{running.origin}{path}")
    monkeypatch.setattr(adapter, "_keys", {})
    monkeypatch.setattr(adapter, "_tokens", {})
    yield running
    listener.shutdown()
    thread.join()
    listener.server_close()


@pytest.fixture
def channel(teams: Teams, deployment: Any) -> Channel:
    return make_channel(deployment, ChannelKind.TEAMS, app_id=APP, directory=DIRECTORY, password="right")


def token(teams: Teams, *, key: Any = KEY, kid: str = "one", **claims: Any) -> str:
    usual = {"iss": adapter.ISSUER, "aud": APP, "exp": time.time() + 600, "serviceurl": f"{teams.origin}/teams"}
    return jwt.encode({**usual, **claims}, key, "RS256", headers={"kid": kid})


def tell(teams: Teams, channel: Channel, text: str = "", *, bearer: str | None = None, **fields: Any) -> Any:
    activity = {
        "type": "message",
        "id": f"m-{time.time_ns()}",
        "serviceUrl": f"{teams.origin}/teams",
        "channelId": "msteams",
        "from": {"id": "29:ada", "name": "Ada"},
        "conversation": {"id": "a:one", "conversationType": "personal", "tenantId": DIRECTORY},
        "text": text,
        **fields,
    }
    url = reverse("channel-webhook", args=[channel.kind, channel.public_id])
    headers = {"Authorization": f"Bearer {token(teams) if bearer is None else bearer}"}
    return Client().post(url, json.dumps(activity), content_type="application/json", headers=headers)


def entries(channel: Channel) -> list[str]:
    with tenant_scope(channel.tenant_id):
        return list(ChronicleEntry.objects.order_by("created_at").values_list("text", flat=True))


@pytest.mark.parametrize(
    "how",
    [
        {"iss": "https://sts.windows.net/x/"},
        {"aud": "another-app"},
        {"exp": 1_000},
        {"serviceurl": "https://smba.trafficmanager.net/teams"},
        {"key": OTHER},
        {"kid": "two"},
    ],
)
def test_token_that_is_not_for_this_activity_is_refused(teams: Teams, channel: Channel, how: dict[str, Any]) -> None:
    assert tell(teams, channel, "Hello", bearer=token(teams, **how)).status_code == 403
    assert tell(teams, channel, "Hello", bearer="").status_code == 403
    assert entries(channel) == []


def test_unsigned_token_and_a_key_without_endorsement_are_refused(teams: Teams, channel: Channel) -> None:
    claims = {"iss": adapter.ISSUER, "aud": APP, "exp": time.time() + 60, "serviceurl": f"{teams.origin}/teams"}
    unsigned = jwt.encode(claims, None, "none", headers={"kid": "one"})  # type: ignore[arg-type]  # no key
    assert tell(teams, channel, "Hello", bearer=unsigned).status_code == 403
    teams.endorsements = ["webchat"]
    adapter._keys.clear()
    assert tell(teams, channel, "Hello").status_code == 403


@pytest.mark.parametrize("url", ["https://evil.example/teams", "https://smba.trafficmanager.net.evil.example/"])
def test_address_that_is_not_microsofts_is_refused(teams: Teams, channel: Channel, url: str) -> None:
    assert tell(teams, channel, "Hello", serviceUrl=url, bearer=token(teams, serviceurl=url)).status_code == 403


def test_another_organization_and_other_activities_are_left_out(teams: Teams, channel: Channel) -> None:
    other = {"id": "a:one", "conversationType": "personal", "tenantId": "directory-2"}
    assert tell(teams, channel, "Hello", conversation=other).status_code == 200
    assert tell(teams, channel, "Hello", type="typing").status_code == 200
    assert entries(channel) == []


def test_message_is_taken_in_once_and_two_people_in_a_thread_are_two(teams: Teams, channel: Channel) -> None:
    for _attempt in range(2):
        tell(teams, channel, "<at>Helper</at> VPN &amp; mail", id="m-1")
    room = {"id": "19:x@thread.tacv2;messageid=1", "conversationType": "channel", "tenantId": DIRECTORY}
    tell(teams, channel, "Mine too", conversation=room)
    tell(teams, channel, "And mine", conversation=room, **{"from": {"id": "29:bob", "name": "Bob"}})
    assert entries(channel) == ["VPN & mail", "Mine too", "And mine"]
    with tenant_scope(channel.tenant_id):
        assert len(set(ChannelThread.objects.values_list("session_id", flat=True))) == 3


def test_answer_goes_to_the_address_of_the_activity_with_options_as_buttons(teams: Teams, channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        place = place_of(channel)
    options = [OutboundOption("Red", "p:1:0")]
    asyncio.run(adapter.TeamsAdapter().send(place, Outbound("Which?", once="x", options=options)))
    (_method, path, body) = teams.calls[0]
    assert path.startswith("/teams/v3/conversations/")
    (action,) = body["attachments"][0]["content"]["actions"]
    assert action["data"] == {"choice": "p:1:0"}


PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx"
    b"\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa75\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82"
)


def test_files_are_fetched_and_checked_like_a_visitors(
    teams: Teams, channel: Channel, deployment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        adapter, "_is_sharepoint", lambda url: url.startswith(f"{teams.origin.replace('127.0.0.1', 'localhost')}/")
    )
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True, pictures=True)
    teams.files = {"/teams/v3/attachments/1/views/original": PNG, "/drive/note.txt": b"a note", "/drive/x.exe": b"MZ"}
    drive = f"{teams.origin.replace('127.0.0.1', 'localhost')}/drive"
    attached = [
        {"contentType": "text/html", "content": "<p>See these</p>"},
        {"contentType": "image/*", "contentUrl": f"{teams.origin}/teams/v3/attachments/1/views/original"},
        {"contentType": adapter._FILE, "name": "note.txt", "content": {"downloadUrl": f"{drive}/note.txt"}},
        {"contentType": adapter._FILE, "name": "x.exe", "content": {"downloadUrl": f"{drive}/x.exe"}},
        {"contentType": adapter._FILE, "name": "y.txt", "content": {"downloadUrl": "https://evil.example/y.txt"}},
        {"contentType": adapter._FILE, "name": "gone.txt", "content": {"downloadUrl": f"{drive}/gone.txt"}},
    ]
    tell(teams, channel, "See these", attachments=attached)
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert sorted(row.name for row in VisitorFile.objects.all()) == ["note.txt", "picture.png"]
        assert ChannelMessage.objects.get(direction=Direction.IN).problem == "files_refused"
    assert entries(channel)[-1] == "See these"
    sent_with = dict(teams.fetched)
    assert sent_with["/teams/v3/attachments/1/views/original"] == "Bearer granted"
    assert sent_with["/drive/note.txt"] == ""


@pytest.mark.parametrize(
    ("url", "is_kept_there"),
    [
        ("https://acme-my.sharepoint.com/personal/ada/x?tempauth=1", True),
        ("http://acme.sharepoint.com/x", False),
        ("https://acme.sharepoint.com.evil.example/x", False),
        ("https://acme.sharepoint.com:444/x", False),
        ("https://user@acme.sharepoint.com/x", False),
        ("https://[x", False),
    ],
)
def test_files_come_from_sharepoint_alone(url: str, is_kept_there: bool) -> None:
    assert adapter._is_sharepoint(url) is is_kept_there


def send_staffs_file(teams: Teams, channel: Channel) -> str:
    """The address of the button with which a file of staff arrived; "" for a text that only names it."""
    tell(teams, channel, "Hello")
    with tenant_scope(channel.tenant_id):
        session = ChannelThread.objects.get(channel=channel).session
    assert session is not None
    received = files.receive("note.txt", [b"a note"], {"txt"}, 100)

    def write(stored_name: str) -> VisitorFile:
        return files.append_file(
            lock_session(session.pk), received, client_id="f1", stored_name=stored_name, sender=Sender.BOT
        )

    files.store(channel.tenant_id, received, write)
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)
    body = teams.calls[-1][2]
    if "attachments" not in body:
        assert body["text"] == "note.txt"
        return ""
    (action,) = body["attachments"][0]["content"]["actions"]
    assert action["type"] == "Action.OpenUrl"
    return str(action["url"])


def test_file_leaves_as_a_link_that_ends_with_the_channel(teams: Teams, channel: Channel) -> None:
    connect(channel)
    url = send_staffs_file(teams, channel)
    assert url.startswith("https://here.example/channels/files/")
    path = url.removeprefix("https://here.example")
    answer = Client().get(path)
    assert b"".join(answer.streaming_content) == b"a note"  # type: ignore[attr-defined]  # a file
    assert answer["Content-Disposition"] == 'attachment; filename="note.txt"'
    assert Client().get(path[:-1] + ("A" if path[-1] != "A" else "B")).status_code == 404
    assert Client().get("/channels/files/nonsense").status_code == 404
    with time_machine.travel(now() + timedelta(days=7, minutes=1)):
        assert Client().get(path).status_code == 404
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", enabled=False)
    assert Client().get(path).status_code == 404


def test_file_is_named_where_our_own_address_is_not_known(teams: Teams, channel: Channel) -> None:
    assert send_staffs_file(teams, channel) == ""


def connect(channel: Channel) -> None:
    webhook = f"https://here.example/channels/teams/{channel.public_id}"
    asyncio.run(services.connect(channel.tenant_id, channel.pk, webhook=webhook, actor="user:test"))


def test_wrong_secret_is_named(teams: Teams, deployment: Any) -> None:
    wrong = make_channel(deployment, ChannelKind.TEAMS, app_id=APP, directory=DIRECTORY, password="wrong")
    with tenant_scope(wrong.tenant_id):
        place = place_of(wrong)
    with pytest.raises(NotSent) as refused:
        asyncio.run(adapter.TeamsAdapter().connect(place, "https://here.example"))
    assert refused.value.code == "invalid_client"


def test_card_of_low_risk_is_decided_by_its_button(teams: Teams, channel: Channel, owner: Any) -> None:
    with tenant_scope(channel.tenant_id):
        accounts.set_policy(
            owner, enabled=True, channels=[str(channel.pk)], people=[], decide_in_place=True, verified_days=30
        )
        code = accounts.create_code(owner)
    tell(teams, channel, code)
    with tenant_scope(channel.tenant_id):
        assert ApproverAccount.objects.get().account == "29:ada"
    card = make_kind(channel.tenant, CardKind.GATE)
    carry_out_kinds(channel.tenant_id, Kind.CARD_NOTICE)
    opened, sent = teams.calls
    assert opened[2]["members"] == [{"id": "29:ada"}]
    approve = sent[2]["attachments"][0]["content"]["actions"][0]
    tell(teams, channel, value=approve["data"], replyToId="a-2", conversation={"id": "a:x", "tenantId": DIRECTORY})
    assert "sent to someone else" in teams.calls[-1][2]["text"]
    tell(teams, channel, value=approve["data"], replyToId="a-2", conversation={"id": "a-1", "tenantId": DIRECTORY})
    assert teams.calls[-1][2]["text"].startswith("Approved by ")
    with tenant_scope(channel.tenant_id):
        assert Card.objects.get(pk=card.pk).status == "decided"
    carry_out_kinds(channel.tenant_id, Kind.CARD_NOTICE)
    method, path, body = teams.calls[-1]
    assert method == "PUT"
    assert path == "/teams/v3/conversations/a-1/activities/a-2"
    assert body["attachments"][0]["content"]["actions"] == []
