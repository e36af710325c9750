"""Where results are delivered, and where not (contract autonomy B5, C: Run)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from apps.autonomy import services
from apps.autonomy.enums import Channel, OutboxState, SessionStatus, TriggerKind
from apps.autonomy.models import MemoryProposal, Notification, Outbox
from apps.bus.enums import Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.guard.enums import TerminalReason
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import RETURNS, House
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.tenants import make_member

PROMPT = "Within how many days can a coat be returned?"


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """A server that answers with these statuses, repeating the last one, and records what it receives."""
    got: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            status = statuses[min(len(got), len(statuses)) - 1]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", got
        finally:
            server.shutdown()
            thread.join()


def outbox(house: House) -> list[Outbox]:
    with tenant_scope(house.tenant):
        return list(Outbox.objects.order_by("created_at"))


def test_notice_is_in_the_owners_console(house: House) -> None:
    house.through(house.task(route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        assert [each.user_id for each in Notification.objects.all()] == [house.owner.pk]


def test_silent_result_goes_nowhere(house: House) -> None:
    house.through(house.task())
    with tenant_scope(house.tenant):
        assert Notification.objects.count() == 0
        assert Outbox.objects.count() == 0
        assert MemoryProposal.objects.count() == 0


def test_contract_memory_update_is_a_proposal(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.through(house.task(prompt=PROMPT, route={"kind": "memory_update"}))
    assert [(each.state, each.kind, each.taint) for each in house.proposals()] == [("proposed", "memory", "external")]


def test_contract_failed_run_routes_nothing_and_tells_its_owner(house: House) -> None:
    following = house.task()
    route = {"kind": "chain_next", "task": str(following.pk)}
    task = house.task(name="broken", playbook="unanswered", route=route)
    house.change(task, playbook="no such playbook")
    session = house.through(task)
    with tenant_scope(house.tenant):
        told = Notification.objects.get().counts["failed"]
    assert session.status == SessionStatus.FAILED
    assert len(house.sessions()) == 1
    assert told == 1


def test_contract_ethics_review_and_delivery_run_after_a_failure(house: House) -> None:
    task = house.change(house.task(playbook="unanswered"), playbook="no such playbook")
    phases = house.receipt(house.through(task))["phase_transitions"]
    assert [each["to_phase"] for each in phases] == ["intake", "analysis", "drafting", "ethics_review", "delivery"]


def test_contract_chain_next_runs_inside_what_its_parent_has_left(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    following = house.task(limits={"cost_usd": "0.50", "calls": 25})
    route = {"kind": "chain_next", "task": str(following.pk)}
    parent = house.through(house.task(prompt=PROMPT, route=route, limits={"cost_usd": "0.10", "calls": 12}))
    child = house.sessions(parent=parent)[0]
    used = house.receipt(parent)["used"]["calls"]
    assert child.frozen_limits.cost_usd == Decimal("0.10")
    assert child.frozen_limits.calls is not None
    assert child.frozen_limits.calls <= 12 - used + 1


def test_chained_task_is_told_the_result_as_a_strangers_words(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    route = {"kind": "chain_next", "task": str(house.task().pk)}
    parent = house.through(house.task(prompt=PROMPT, route=route))
    assert "30 days" in house.sessions(parent=parent)[0].context


def test_chain_that_spent_everything_begins_nothing(house: House) -> None:
    route = {"kind": "chain_next", "task": str(house.task().pk)}
    parent = house.through(house.task(route=route, limits={"calls": 3}))
    assert parent.status == SessionStatus.COMPLETED
    assert house.sessions(parent=parent) == []


def test_task_that_would_follow_from_itself_is_refused(house: House) -> None:
    one = house.task()
    two = house.task(route={"kind": "chain_next", "task": str(one.pk)})
    with pytest.raises(SilasError) as refused:
        house.task(task_id=one.pk, name=one.name, route={"kind": "chain_next", "task": str(two.pk)})
    assert refused.value.code == "task_loop"


def test_chain_that_loops_all_the_same_ends(house: House) -> None:
    one = house.task(limits={"calls": 200})
    two = house.task(route={"kind": "chain_next", "task": str(one.pk)}, limits={"calls": 200})
    house.change(one, route={"kind": "chain_next", "task": str(two.pk), "with_context": False})
    house.through(one)
    assert len(house.sessions()) == 2


def test_chain_trigger_begins_after_a_completed_session(house: House) -> None:
    first, second = house.task(), house.task()
    house.trigger(second, TriggerKind.CHAIN, after=str(first.pk))
    parent = house.through(first)
    house.finish()
    assert [child.task_id for child in house.sessions(parent=parent)] == [second.pk]


def test_webhook_is_told_once_and_can_check_who_wrote(house: House) -> None:
    with receiver(200) as (url, got):
        _, secret = house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.through(house.task())
        house.work(Queue.TRUSTED)
        house.work(Queue.TRUSTED)
    ((headers, body),) = got
    assert secret.startswith("whsec_")
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()
    content = json.loads(body)
    assert content["type"] == "task.completed"
    assert content["id"] == headers["webhook-id"]


def test_webhook_that_fails_is_tried_again(house: House) -> None:
    with receiver(500, 200) as (url, got):
        house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.through(house.task())
        house.work(Queue.TRUSTED)
        assert [row.state for row in outbox(house)] == [OutboxState.WAITING]
        let_waits_pass(house.tenant)
        house.work(Queue.TRUSTED)
    assert len(got) == 2
    assert outbox(house)[0].state == OutboxState.SENT


class _Endless(BaseHTTPRequestHandler):
    """Answer 200 with a body that never ends."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65_536)

    def log_message(self, *args: Any) -> None:
        """Nothing."""


@pytest.mark.timeout(60)
def test_answer_of_a_webhook_is_not_read(house: House) -> None:
    """Only the status is read: an endless answer would block all deliveries."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        house.do(services.save_webhook, f"http://127.0.0.1:{server.server_port}/", user=house.owner)
        house.through(house.task())
        house.work(Queue.TRUSTED)
        server.shutdown()
    assert {row.state for row in outbox(house)} == {OutboxState.SENT}


def test_name_of_a_webhook_is_looked_up_once(house: House, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to an internal address the second time gains nothing by it."""
    asked: list[Any] = []
    called: list[Any] = []
    settings.WEBHOOKS_PRIVATE = False

    def look_up(host: Any, port: Any, *args: Any, **named: Any) -> list[Any]:
        asked.append(host)
        outside = asked == ["hooks.example.com"]
        return [(2, 1, 6, "", ("93.184.216.34" if outside else "127.0.0.1", port))]

    async def connect(self: Any, sock: Any, address: Any) -> None:
        called.append(address[0])
        raise OSError

    house.do(services.save_webhook, "https://hooks.example.com/x", user=house.owner, events=["task.completed"])
    house.through(house.task())
    monkeypatch.setattr("socket.getaddrinfo", look_up)
    monkeypatch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", connect)
    house.work(Queue.TRUSTED)
    assert called == ["93.184.216.34"]


def test_webhook_whose_sender_died_is_told(house: House) -> None:
    with receiver(200) as (url, got):
        house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.through(house.task())
        house.do(lease_any, Queue.TRUSTED, consumer="doomed")
        house.work(Queue.TRUSTED)
        assert got == []
        let_leases_run_out(house.tenant)
        house.work(Queue.TRUSTED)
    assert len(got) == 1


def test_webhook_that_waits_for_another_try_holds_no_other_up(house: House) -> None:
    with receiver(500) as (away, _), receiver(200) as (there, got):
        for url in (away, there):
            house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.through(house.task())
        house.through(house.task())
        house.work(Queue.TRUSTED)
    assert len(got) == 2


def test_webhook_into_the_house_is_never_called(house: House, settings: Any) -> None:
    with receiver(200) as (url, got):
        house.do(services.save_webhook, url, user=house.owner)
        settings.WEBHOOKS_PRIVATE = False
        house.through(house.task())
        house.work(Queue.TRUSTED)
    calls = [row.state for row in outbox(house) if row.channel == Channel.WEBHOOK]
    assert got == []
    assert set(calls) == {OutboxState.GIVEN_UP}


@pytest.mark.parametrize(
    "url", ["http://example.com/", "ftp://example.com/", "https://user:pw@example.com/", "https:///x"]
)
def test_webhook_address_that_is_none_is_refused(house: House, settings: Any, url: str) -> None:
    settings.WEBHOOKS_PRIVATE = False
    with pytest.raises(SilasError) as refused:
        house.do(services.save_webhook, url, user=house.owner)
    assert refused.value.code == "webhook_url"


def test_only_owners_set_up_webhooks(house: House) -> None:
    with pytest.raises(SilasError) as refused:
        house.do(services.save_webhook, "https://example.com/", user=make_member(house.tenant, "approver"))
    assert refused.value.status == 403


def test_row_that_cannot_be_sent_at_all_is_given_up_and_stops_no_other(house: House) -> None:
    with receiver(200) as (url, got):
        broken, _ = house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.do(services.save_webhook, url, user=house.owner, events=["task.completed"])
        house.change(broken, sealed_secret=b"no secret of this installation")
        house.through(house.task())
        for _ in range(MAX_ATTEMPTS):
            house.work(Queue.TRUSTED)
            let_waits_pass(house.tenant)
    assert len(got) == 1
    assert {row.webhook_id: row.state for row in outbox(house)}[broken.pk] == OutboxState.GIVEN_UP


def test_letter_is_not_sent_without_a_mail_server(house: House) -> None:
    house.through(house.task(route={"kind": "notify", "email": True}))
    house.work(Queue.TRUSTED)
    assert [(row.state, row.error_code) for row in outbox(house)] == [(OutboxState.GIVEN_UP, "no_mail_server")]


def test_letter_says_how_many_and_no_word_of_what_was_found(house: House, settings: Any, tmp_path: Path) -> None:
    from django.core import mail

    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "mail.test", "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    house.know(tmp_path, returns=RETURNS)
    house.through(house.task(name="Look", prompt=PROMPT, route={"kind": "notify", "email": True}))
    house.work(Queue.TRUSTED)
    (letter,) = mail.outbox
    assert letter.to == [house.owner.email]
    assert "30 days" not in letter.body
    assert "findings" in letter.body


def test_letter_of_a_task_with_a_broken_line_in_its_name_is_sent(house: House, settings: Any) -> None:
    from django.core import mail

    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "mail.test", "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    house.through(house.task(name="Look\r\nBcc: a@b.example", route={"kind": "notify", "email": True}))
    house.work(Queue.TRUSTED)
    assert [letter.subject for letter in mail.outbox] == ["Done: Look Bcc: a@b.example"]


def test_halted_run_routes_nothing(house: House) -> None:
    session = house.through(house.task(route={"kind": "notify"}, limits={"calls": 2}))
    with tenant_scope(house.tenant):
        assert session.terminal_reason == TerminalReason.BUDGET_TOOL_CALLS
        assert [each.reason for each in Notification.objects.all()] == ["budget_tool_calls"]
        (letter,) = Outbox.objects.all()
        assert letter.notice_id == Notification.objects.get().pk
