"""A worker is killed, with -9, while a script of its runs: during a set-up, and during a renewal.

The worker is a process of its own; its progress is read off the script's process, which is identified by the
connection's settings in its environment.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from apps.bus.enums import Kind
from apps.connections import credentials
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection, Credential, SetupAnswer
from apps.connections.services.status import schedule_check
from apps.skills import rules as skill_rules
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests import nursery
from tests.connections.links import ASKS_SECRET, link, make_skill, said_yes
from tests.connections.test_secrets import send
from tests.connections.test_setup import attend_owed, credentials_of, until
from tests.factories.bus import carry_out_kinds, let_leases_run_out
from tests.factories.connections import check_due, hold, make_connection, reread

ROOT = Path(__file__).resolve().parents[2]
WORKS = """
from apps.bus.enums import Kind
from tests.factories.bus import carry_out_kinds
carry_out_kinds(UUID(sys.argv[1]), Kind(sys.argv[2]), consumer="killed")
"""
# As long as the connection's settings say so, a script takes its time.
LINGER = 'import time; time.sleep(90 if json.loads(os.environ["SILAS_SETTINGS"]).get("slow") else 0)'
RENEWS = f'{LINGER}; hand_over(token=held["token"] + "+"); say({{"success": True, "new_expires_at": None}})'
LINGERS = ASKS_SECRET.replace("complete(", f"{LINGER}\ncomplete(")


@contextmanager
def worker(tenant: Any, kind: Kind) -> Iterator[subprocess.Popen[bytes]]:
    source = f"import sys, django; from uuid import UUID; django.setup()\n{WORKS}"
    process = nursery.start([sys.executable, "-c", source, str(tenant.pk), kind.value], cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def running(mark: str, script: str) -> list[int]:
    """Return processes of this script, for the connection whose settings hold the mark."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (
                script.encode() in (folder / "cmdline").read_bytes()
                and mark.encode() in (folder / "environ").read_bytes()
            ):
                found.append(int(folder.name))
    return found


def set_(row: Connection, **settings: Any) -> None:
    with tenant_scope(row.tenant_id):
        Connection.objects.filter(pk=row.pk).update(settings=settings)


def kill(process: subprocess.Popen[bytes], mark: str, script: str) -> None:
    """Kill the worker; nothing of what it ran is left."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not running(mark, script))


def test_worker_that_dies_while_it_renews_leaves_one_renewal_to_the_next(tenant: Any) -> None:
    version = make_skill(tenant, refresh_token=RENEWS)
    ref = skill_rules.reference(version.name, version.digest)
    soon = {"next_check_at": now() - timedelta(seconds=1), "token_expires_at": now() + timedelta(minutes=5)}
    mark = f"mark-{uuid4().hex}"
    row = make_connection(tenant, skill=ref, settings={"mark": mark, "slow": True}, **soon)
    with tenant_scope(tenant):
        credentials.store(row.pk, {"token": "first"})
        schedule_check(row)
    with worker(tenant, Kind.CONNECTION_CHECK) as process:
        until(lambda: running(mark, "refresh_token.py"))
        assert check_due(tenant) == 0  # its lease stands
        kill(process, mark, "refresh_token.py")
    set_(row, slow=False)
    assert check_due(tenant) == 0
    assert credentials_of(tenant, row) == {"token": "first"}
    let_leases_run_out(tenant)
    assert [check_due(tenant) for _ in range(2)] == [1, 0]
    assert credentials_of(tenant, row) == {"token": "first+"}
    assert reread(row).status == ConnectionStatus.ACTIVE


def test_worker_that_dies_in_a_setup_leaves_nothing_half_linked_and_a_card(tenant: Any, owner: Any) -> None:
    mark = f"mark-{uuid4().hex}"
    row = link(tenant, settings={"mark": mark, "slow": True}, setup=LINGERS)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    with worker(tenant, Kind.CONNECTION_SETUP) as process:
        until(lambda: reread(setup).state == SetupState.ASKING)
        send(owner, reread(setup).step["request"]["ref_id"], {"value": "a-typed-key"})
        until(lambda: reread(setup).state == SetupState.RUNNING)  # the script has it
        kill(process, mark, "setup.py")
    assert hold(tenant, setup) is False  # nobody goes on with what another process may still hold
    let_leases_run_out(tenant)
    carry_out_kinds(tenant, Kind.CONNECTION_SETUP)
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0
        assert SetupAnswer.objects.count() == 0
    assert reread(setup).failure["code"] == "worker_lost"
    assert reread(row).status == ConnectionStatus.FAILED
    attend_owed(tenant)
    again = said_yes(tenant, row, owner, "retry")
    assert again is not None
    assert again.state == SetupState.WAITING
    assert again.purpose == "reconnect"
