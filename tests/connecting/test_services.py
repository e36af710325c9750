"""A key, a mailbox and a calendar with the shipped skills, each against a real server of this machine."""

from __future__ import annotations

import base64
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import Choice, configure
from tests.connecting.driving import SKILLS, Driven
from tests.factories.source_services import S3, TOKEN, Service, serving
from tests.services import calendar, mail
from tests.services.calendar import CalendarServer
from tests.services.mail import MailServer

KEY = "key-of-the-service"
NAMED = base64.b64encode(f"name:{KEY}".encode()).decode()
MAIL = {"to": "customer@example.org", "subject": "Your pickup", "text": "See you at ten."}
EVENT = {"title": "Pickup, order H-90187", "start": "2026-12-01T10:30", "minutes": 30}


_places: list[str] = []


def allow(place: str) -> None:
    """Beside those that are allowed already."""
    _places.append(place)
    configure(Choice(egress_private=tuple(_places)))


class Keyed(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/stolen")
        else:
            is_named = self.headers.get("X-Key") == f"Basic {NAMED}" and self.headers.get("X-Version") == "2"
            self.send_response(200 if is_named or self.headers.get("X-Key") == f"Key {KEY}" else 401)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def connected(
    skill: str, settings: dict[str, str], place: str, secret: dict[str, str]
) -> tuple[Driven, dict[str, Any]]:
    driven = Driven(skill, settings, (place,))
    permissions = {"initial_permissions": ["first"], "incremental_scopes": ["second"]}
    return driven, driven.set_up("secure_input", lambda _: {"success": True}, secret=secret, **permissions)


@pytest.fixture(scope="module")
def keyed() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keyed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        allow(place := f"127.0.0.1:{server.server_port}")
        yield place
        configure(Choice())
        server.shutdown()


@pytest.fixture
def bucket() -> Iterator[Service]:
    with serving(S3()) as server:
        allow(server.origin.removeprefix("http://"))
        yield server


@pytest.fixture(scope="module")
def post() -> Iterator[MailServer]:
    with mail.serving() as server:
        allow(server.place)
        yield server
        configure(Choice())


@pytest.fixture(scope="module")
def diary() -> Iterator[CalendarServer]:
    with calendar.serving() as server:
        allow(server.place)
        yield server
        configure(Choice())


@pytest.fixture
def key_settings(keyed: str) -> dict[str, str]:
    return {"base_url": f"http://{keyed}", "header": "X-Key", "prefix": "Key "}


@pytest.fixture
def mailbox(post: MailServer) -> Driven:
    return Driven("smtp-mail", post.settings, (post.place,), {"password": mail.PASSWORD})


@pytest.fixture
def book(diary: CalendarServer) -> Driven:
    return Driven("caldav", diary.settings, (diary.place,), {"password": calendar.PASSWORD})


def test_key_that_works_is_taken(keyed: str, key_settings: dict[str, str]) -> None:
    driven, last = connected("generic-api-key", key_settings, keyed, {"api_key": KEY})
    assert last["type"] == "completion"
    assert last["connection_payload"]["permissions_granted"] == ["first", "second"]
    assert driven.ask("health_check", connection_id="1")["healthy"]
    assert driven.ask("probe", connection_id="1")["success"]


def test_name_and_password_are_sent_as_basic_beside_another_header(keyed: str, key_settings: dict[str, str]) -> None:
    settings = {**key_settings, "prefix": "Basic", "more_header": "X-Version: 2"}
    _, last = connected("generic-api-key", settings, keyed, {"api_key": f"name:{KEY}"})
    assert last["type"] == "completion"


def test_key_that_does_not_work_is_not_taken(keyed: str, key_settings: dict[str, str]) -> None:
    _, last = connected("generic-api-key", key_settings, keyed, {"api_key": "wrong-key"})
    assert last["failure"]["failure_type"] == "token_revoked"


def test_key_does_not_follow_a_redirect(keyed: str, key_settings: dict[str, str]) -> None:
    settings = {**key_settings, "health_path": "/elsewhere"}
    _, last = connected("generic-api-key", settings, keyed, {"api_key": KEY})
    assert last["failure"]["failure_type"] == "service_unavailable"


def test_key_is_sent_over_no_open_line(key_settings: dict[str, str]) -> None:
    settings = {**key_settings, "base_url": "http://shop.example"}
    _, last = connected("generic-api-key", settings, "shop.example:80", {"api_key": KEY})
    assert "not an https address" in last["failure"]["message"]


def test_bucket_is_listed_with_its_key(bucket: Service) -> None:
    settings = {"base_url": bucket.origin, "region": "eu-central-1", "bucket": "docs", "access_key_id": TOKEN}
    place = bucket.origin.removeprefix("http://")
    driven, last = connected("s3-bucket", settings, place, {"secret_access_key": "the-key-of-the-bucket"})
    assert last["type"] == "completion"
    assert driven.ask("health_check", connection_id="1")["healthy"]
    bucket.token = "another"
    assert driven.ask("probe", connection_id="1")["failure"]["failure_type"] == "token_revoked"


def test_mailbox_is_signed_in_and_probed(post: MailServer) -> None:
    driven, last = connected("smtp-mail", post.settings, post.place, {"password": mail.PASSWORD})
    assert last["type"] == "completion"
    assert driven.ask("probe", connection_id="1")["success"]


def test_mailbox_with_a_wrong_password_is_not_taken(post: MailServer) -> None:
    _, last = connected("smtp-mail", post.settings, post.place, {"password": "wrong-word"})
    assert last["failure"]["failure_type"] == "token_revoked"


def test_mail_server_whom_nobody_vouches_for_gets_no_password(post: MailServer) -> None:
    _, last = connected("smtp-mail", {**post.settings, "ca": ""}, post.place, {"password": mail.PASSWORD})
    assert last["failure"]["failure_type"] == "service_unavailable"
    assert "SSL" in last["failure"]["message"]


def test_mail_is_sent_and_its_check_agrees(mailbox: Driven, post: MailServer) -> None:
    told, result = mailbox.tool("send_mail", **MAIL)
    assert told["sent"] is True
    assert post.taken[-1]["Subject"] == MAIL["subject"]
    assert post.taken[-1]["To"] == MAIL["to"]
    assert mailbox.check("send_mail", MAIL, result.artifacts) == "taken"
    assert mailbox.check("send_mail", {**MAIL, "to": "other@example.org"}, result.artifacts) == "not taken"


def test_mail_that_is_refused_is_no_success(mailbox: Driven, post: MailServer) -> None:
    post.refuse = True
    told, result = mailbox.tool("send_mail", **MAIL)
    post.refuse = False
    assert "refused the mail" in told["refused"]
    assert mailbox.check("send_mail", MAIL, result.artifacts) == "not taken"


def test_calendar_is_opened_and_probed(diary: CalendarServer) -> None:
    driven, last = connected("caldav", diary.settings, diary.place, {"password": calendar.PASSWORD})
    assert last["connection_payload"]["summary"] == "The calendar Pickups is open."
    assert driven.ask("health_check", connection_id="1")["healthy"]


def test_calendar_with_a_wrong_password_is_not_taken(diary: CalendarServer) -> None:
    _, last = connected("caldav", diary.settings, diary.place, {"password": "wrong-word"})
    assert last["failure"]["failure_type"] == "token_revoked"


def test_calendars_are_listed(book: Driven) -> None:
    assert [row["name"] for row in book.tool("list_calendars")[0]["calendars"]] == ["Pickups"]


def test_demo_calendar_holds_an_event_as_a_real_one_does() -> None:
    """What a new user tries connections with; run as they run it."""
    program = [sys.executable, str(SKILLS.parent / "demo/diary.py"), "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        told = dict(process.stdout.readline().split() for _ in range(3))
        place = told["url"].split("/")[2]
        allow(place)
        book, last = connected("caldav", told, place, {"password": told.pop("password")})
        made, result = book.tool("create_event", **EVENT)
        listed = book.tool("list_events", day="2026-12-01")[0]["events"]
        book.tool("delete_event", event=made["event"])
        left = book.tool("list_events", day="2026-12-01")[0]["events"]
        process.kill()
    assert last["type"] == "completion"
    assert len(listed) == 1
    assert left == []
    assert book.check("create_event", EVENT, result.artifacts) == "there"


def test_event_is_made_once_read_back_and_taken_out_again(book: Driven, diary: CalendarServer) -> None:
    made, result = book.tool("create_event", **EVENT)
    again, _ = book.tool("create_event", **EVENT)
    assert made == again
    assert book.check("create_event", EVENT, result.artifacts) == "there"
    assert b"Pickup" in diary.ask("GET", f"silas-{made['event']}.ics")
    day = book.tool("list_events", day="2026-12-01")[0]
    assert day["events"] == [{"title": EVENT["title"], "start": "20261201T103000", "end": "20261201T110000"}]
    _, result = book.tool("delete_event", event=made["event"])
    assert book.check("delete_event", {"event": made["event"]}, result.artifacts) == "gone"
    assert book.tool("list_events", day="2026-12-01")[0]["events"] == []


def test_check_sees_an_event_that_is_another_one(book: Driven) -> None:
    _, result = book.tool("create_event", **{**EVENT, "minutes": 45})
    assert book.check("create_event", EVENT, result.artifacts) == "not there"
    assert book.check("create_event", EVENT, {}) == "not there"


def test_event_whose_title_is_hostile_stays_a_title(book: Driven) -> None:
    args = {**EVENT, "title": "A;B,C\\n ÄÖ END:VEVENT " + "x" * 90}
    _, result = book.tool("create_event", **args)
    assert book.check("create_event", args, result.artifacts) == "there"
