"""A set-up succeeds only when everything is in order, and leaves nothing behind otherwise. In the real sandbox."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any
from uuid import UUID

import pytest
from django.db import connection as database

from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.connections import credentials
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.handlers import open_card
from apps.connections.models import Connection, Credential, PendingSecret, SetupAnswer, SetupRun
from apps.connections.services import lifecycle, setup_state
from apps.connections.setup_session import Limits
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.connections.links import ASKS_SECRET, link, said_yes
from tests.connections.test_secrets import CANARY, send
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.connections import hold, reread

SHORT, LONG = Limits(silence=3, whole=60), Limits(silence=30, whole=120)


def held(tenant: Any, owner: Any, **scripts: str | None) -> tuple[Connection, SetupRun]:
    """Approve the connection and hold its set-up to its end, in this thread."""
    row = link(tenant, **scripts)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    hold(tenant, setup, SHORT)
    return reread(row), reread(setup)


def credentials_of(tenant: Any, row: Connection) -> dict[str, str]:
    with tenant_scope(tenant):
        return credentials.unseal_all(row.pk)


def attend_owed(tenant: Any) -> None:
    """Open every card that is enqueued, as a trusted process would."""
    with tenant_scope(tenant):
        for message in QueueMessage.objects.filter(kind="connection_owed"):
            open_card(message.payload["event"], UUID(message.payload["subject"]), message.payload["permissions"])


def until(condition: Any) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


class Beside:
    """A set-up held in a thread, while the test does what a person would."""

    def __init__(self, tenant: Any, setup: SetupRun, limits: Limits = LONG) -> None:
        self.tenant, self.setup, self.limits = tenant, setup, limits
        self.thread = Thread(target=self._hold)
        self.thread.start()

    def _hold(self) -> None:
        try:
            hold(self.tenant, self.setup, self.limits)
        finally:
            database.close()

    def asks(self) -> SetupRun:
        until(lambda: reread(self.setup).state == SetupState.ASKING)
        found: SetupRun = reread(self.setup)
        return found

    def asks_for(self, step_id: str) -> None:
        until(lambda: (reread(self.setup).state, reread(self.setup).step_id) == (SetupState.ASKING, step_id))

    def ends(self) -> SetupRun:
        self.thread.join(90)
        found: SetupRun = reread(self.setup)
        return found


def test_approved_setup_with_a_probe_is_active_with_its_credentials(tenant: Any, owner: Any) -> None:
    row, setup = held(tenant, owner)
    assert row.status == ConnectionStatus.ACTIVE
    assert setup.state == SetupState.DONE
    assert setup.failure is None
    assert row.identity == "ana@example.test"
    assert row.permissions_granted == ["Mail.Read"]
    assert credentials_of(tenant, row) == {"token": "t-" + "x" * 20}
    assert setup.summary["probe"] == {"success": True, "count": 3}


def test_declined_connection_begins_nothing(tenant: Any, owner: Any) -> None:
    row = link(tenant)
    assert said_yes(tenant, row, owner, "decline") is None
    assert reread(row).status == ConnectionStatus.REMOVED


def test_approval_of_other_settings_begins_nothing(tenant: Any, owner: Any) -> None:
    row = link(tenant)
    with tenant_scope(tenant):
        Connection.objects.update(settings={"endpoint": "https://elsewhere.test"})
    assert said_yes(tenant, row, owner) is None


BAD = {
    "exit_0_without_completion": ("hear()", "script_incomplete"),
    "exit_1": ("hear(); sys.exit(1)", "script_failed"),
    "exit_1_after_completion": ("hear(); complete(); sys.exit(1)", "script_failed"),
    "silence": ("hear()\nimport time; time.sleep(50)", "setup_silent"),
    "wrong_step": (
        'hear(); say({"type":"setup_step","step_id":"a","step":{"type":"progress","message":"m"}})\n'
        'say({"type":"await_input","step_id":"b"}); hear()',
        "setup_wrong_step",
    ),
    "ten_megabytes_in_a_line": ('hear(); print("x" * 10_000_000, flush=True); complete()', "script_output_limit"),
    "half_a_line": ('hear(); sys.stdout.write(\'{"type":"comple\'); sys.stdout.flush()', "script_incomplete"),
    "secret_in_completion": (
        'hear(); new = "-".join(["tok", "123456789"]); hand_over(**{"token": new}); complete(identity=new)',
        "script_secret_leaked",
    ),
    "unreadable_credentials": (
        'hear(); os.write(int(os.environ["SILAS_SECRET_OUT_FD"]), b"[]"); complete()',
        "script_secret_malformed",
    ),
    "failure": (
        'hear(); say({"type":"failure","failure":{"failure_type":"consent_denied","service":"S","message":"m"}})',
        "connection_consent_denied",
    ),
    "unknown_failure": ('hear(); say({"type":"failure","failure":{"failure_type":"odd"}})', "script_incomplete"),
    "redirect_without_state": (
        'hear(); ask("go", type="browser_redirect", auth_url="https://login.example.test/?state=mine")',
        "state_missing",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_script_fails_the_setup_and_leaves_nothing(tenant: Any, owner: Any, name: str) -> None:
    code, wanted = BAD[name]
    row, setup = held(tenant, owner, setup=code)
    assert setup.state == SetupState.FAILED
    assert setup.failure["code"] == wanted
    assert row.status == ConnectionStatus.FAILED
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0


def test_noise_is_counted_and_left_out(tenant: Any, owner: Any) -> None:
    noise = """
    start = hear()
    print("garbage"); print("[]"); print('{"type":"dance"}'); print('"text"'); print("{" * 300); print("", flush=True)
    sys.stderr.write('{"type":"failure","failure":{}}')
    say({"type": "log", "level": "info", "message": "fine"})
    complete(permissions_granted=start["initial_permissions"])
    """
    row, setup = held(tenant, owner, setup=noise)
    assert row.status == ConnectionStatus.ACTIVE
    assert setup.ignored == 6


@pytest.mark.parametrize(
    ("probe", "health", "code"),
    [
        ('say({"success": False})', 'say({"healthy": True})', "probe_failed"),
        ("sys.exit(1)", 'say({"healthy": True})', "script_failed"),
        (None, "sys.exit(1)", "script_failed"),
        (None, 'say({"healthy": False})', "probe_failed"),
        ('say({"failure": {"failure_type": "mfa_required"}})', 'say({"healthy": True})', "connection_mfa_required"),
    ],
)
def test_completion_without_a_probe_that_works_is_not_active(
    tenant: Any, owner: Any, probe: str | None, health: str, code: str
) -> None:
    row, setup = held(tenant, owner, probe=probe, health_check=health)
    assert row.status == ConnectionStatus.FAILED
    assert setup.failure["code"] == code
    assert credentials_of(tenant, row) == {}


def test_script_cannot_grant_itself_more_than_was_approved(tenant: Any, owner: Any) -> None:
    row, _ = held(tenant, owner, setup='hear(); complete(permissions_granted=["Mail.Read", "Mail.Send", "Admin"])')
    assert row.permissions_granted == ["Mail.Read"]


def test_typed_secret_reaches_the_script_and_nothing_else(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=ASKS_SECRET)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    step = beside.asks().step
    answer = send(owner, step["request"]["ref_id"], {"value": CANARY})
    assert answer.status_code == 200
    assert beside.ends().state == SetupState.DONE
    assert credentials_of(tenant, row) == {"api_key": CANARY}
    assert reread(row).identity == str(len(CANARY))
    assert written_anywhere(tenant, CANARY) == []


def test_script_that_says_the_typed_secret_aloud_fails(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=ASKS_SECRET.replace("str(len(key))", "key"))
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    send(owner, beside.asks().step["request"]["ref_id"], {"value": CANARY})
    assert beside.ends().failure["code"] == "script_secret_leaked"
    assert written_anywhere(tenant, CANARY) == []
    assert credentials_of(tenant, row) == {}


CODE = 'type="device_code", verification_url="https://login.example.test/", user_code="AB", expires_in=600'
# What it is told at the second step, it hands over: of a cancelled set-up that is kept nowhere.
ASKS_TWICE = f"""
{ASKS_SECRET.replace("complete(", "# ")}
told = ask("code", {CODE})
hand_over(**{{"told": told["type"] + "-as-the-protocol-says"}})
complete(permissions_granted=start["initial_permissions"])
"""


def test_cancel_ends_the_script_and_clears_what_it_brought(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=ASKS_TWICE)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    send(owner, beside.asks().step["request"]["ref_id"], {"value": CANARY})
    beside.asks_for("code")
    with tenant_scope(tenant):
        before = Credential.objects.count()
        setup_state.cancel(setup.pk, actor="system")
    assert beside.ends().state == SetupState.CANCELLED
    assert reread(row).status == ConnectionStatus.PROPOSED
    with tenant_scope(tenant):
        assert before == 1
        assert Credential.objects.count() == 0
        assert SetupAnswer.objects.count() == 0


def test_who_says_too_early_that_the_code_was_entered_loses_no_time(tenant: Any, owner: Any) -> None:
    """The script polls, and says nothing meanwhile, for longer than a script may that does not."""
    polls = f"start = hear(); told = ask('code', {CODE})\nimport time; time.sleep(5)\n"
    row = link(tenant, setup=polls + "complete(permissions_granted=start['initial_permissions'])")
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup, SHORT)
    beside.asks()
    for _ in range(2):
        with tenant_scope(tenant):
            lifecycle.answer(row.pk, step_id="code", action="done", actor="system")
        until(lambda: not answered(tenant) or reread(setup).ended_at)
    assert beside.ends().failure is None
    assert reread(row).status == ConnectionStatus.ACTIVE


def answered(tenant: Any) -> bool:
    with tenant_scope(tenant):
        return bool(SetupAnswer.objects.exists())


def test_second_process_does_not_hold_what_the_first_holds(tenant: Any, owner: Any) -> None:
    setup = said_yes(tenant, link(tenant), owner)
    assert setup is not None
    with tenant_scope(tenant):
        assert lease_any(Queue.WORK, consumer="first") is not None
    assert hold(tenant, setup) is False


def test_conversation_of_a_lost_worker_fails_and_completes_nothing(tenant: Any, owner: Any) -> None:
    row = link(tenant)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    with tenant_scope(tenant):
        lost = lease_any(Queue.WORK, consumer="lost")
        assert lost is not None
        setup_state.begin_session(setup.pk)
        credentials.store(row.pk, {"token": "partial"}, setup=setup)
    let_leases_run_out(tenant)
    assert hold(tenant, setup) is True
    with tenant_scope(tenant):
        with pytest.raises(SilasError):
            setup_state.complete(setup.pk, lost.ref, setup_state.Completed(), {})
        assert Credential.objects.count() == 0
    assert reread(setup).failure["code"] == "worker_lost"
    assert reread(row).status == ConnectionStatus.FAILED


def test_conversation_whose_time_was_up_before_it_began_fails(tenant: Any, owner: Any) -> None:
    row = link(tenant)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    with tenant_scope(tenant):
        credentials.store(row.pk, {"token": "partial"}, setup=setup)
        SetupRun.objects.update(deadline=now())
    hold(tenant, setup)
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0
    assert reread(setup).failure["code"] == "out_of_time"
    assert reread(row).status == ConnectionStatus.FAILED


def test_conversation_whose_time_is_up_fails_and_leaves_nothing(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=ASKS_SECRET)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    beside.asks()
    with tenant_scope(tenant):
        SetupRun.objects.update(deadline=now())
    assert beside.ends().failure["code"] == "out_of_time"
    assert reread(row).status == ConnectionStatus.FAILED
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0


def test_failed_setup_is_told_with_its_ways_out_and_begins_again_at_a_press(tenant: Any, owner: Any) -> None:
    row, _ = held(tenant, owner, setup=BAD["failure"][0])
    attend_owed(tenant)
    with tenant_scope(tenant):
        card = Card.objects.get(kind="connection_failure")
    assert [each["action"] for each in card.payload["recovery_options"]] == ["retry", "retry_fewer_permissions", "skip"]
    again = said_yes(tenant, row, owner, "retry")
    assert again is not None
    assert again.purpose == "reconnect"
    assert again.wanted == ["Mail.Read"]


def written_anywhere(tenant: Any, text: str) -> list[str]:
    """Return the tables that hold the text in any column, plain or encoded; the audit log is one of them."""
    from base64 import b64encode

    from django.apps import apps

    dresses = [text, b64encode(text.encode()).decode(), text[::-1], text.encode().hex()]
    found = []
    with tenant_scope(tenant), database.cursor() as cursor:
        for model in apps.get_models():
            for dress in dresses:
                cursor.execute(
                    f'SELECT 1 FROM "{model._meta.db_table}" AS t WHERE t::text LIKE %s LIMIT 1', [f"%{dress}%"]
                )
                found += [model._meta.db_table] if cursor.fetchone() else []
    return found


def test_search_finds_what_is_written_down(tenant: Any) -> None:
    row = link(tenant)
    assert "connections_connection" in written_anywhere(tenant, row.name)
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event="connection_proposed").exists()
        assert not PendingSecret.objects.exists()
