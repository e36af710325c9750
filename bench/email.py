"""Measure how soon a mail is answered: from its acceptance by the mail server to the answer in its sender's mailbox.

Real processes and real servers: Dovecot and OpenSMTPD of Debian, the trusted worker that watches the mailbox, the
worker that reads the mail in the sandbox, and the web process that answers with the built-in model. The baseline is how
long the mail server alone takes to put a mail into that mailbox, twice: once in, once out.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path

from bench.report import Row
from bench.stage import Stage, stage
from silas_platform.up import programs
from silas_platform.up.supervisor import Program
from tests.factories.mail_servers import ADA, SUPPORT, MailServers, mail_servers

WARM_UP, ROUNDS, PATIENCE_SECONDS = 2, 12, 60.0
MOST_SECONDS = 3.0


def run() -> list[Row]:
    """p50 and worst of twelve mails, one after the other."""
    with tempfile.TemporaryDirectory(prefix="silas-mail-") as folder, mail_servers(Path(folder)) as servers:
        inbox = Path(folder) / "mail" / "ada"
        env = {"SILAS_CHANNELS_PRIVATE": "1", "SILAS_CHANNELS_CA": servers.authority}
        with stage(env) as ready, _running(ready, programs.trusted), _running(ready, programs.worker):
            _watch(ready, servers)
            answers = [_timed(servers, inbox, SUPPORT, number) for number in range(WARM_UP + ROUNDS)][WARM_UP:]
        bare = [_timed(servers, inbox, ADA, number) for number in range(WARM_UP + ROUNDS)][WARM_UP:]
    own = 2 * statistics.median(bare)
    bound = f"< {MOST_SECONDS:.0f} s and the servers' own"
    return [
        _row("p50", statistics.median(answers), own, bound),
        _row(f"worst of {ROUNDS}", max(answers), 2 * max(bare), bound),
    ]


def _row(which: str, value: float, own: float, bound: str) -> Row:
    name = f"email in to its answer out, {which}"
    return Row(
        name, value, "s", "the mail server alone, in and out", own, value / own, bound, value < MOST_SECONDS + own
    )


def _timed(servers: MailServers, inbox: Path, recipient: str, number: int) -> float:
    """Seconds from the mail's acceptance until another one is in Ada's mailbox."""
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = ADA, recipient, f"Question {number}"
    mail["Message-ID"] = f"<bench-{recipient}-{number}@example.test>"
    mail.set_content("Where is my parcel?")
    before = _count(inbox)
    servers.write(mail)
    accepted = time.perf_counter()
    _wait_until(lambda: _count(inbox) > before)
    return time.perf_counter() - accepted


def _count(inbox: Path) -> int:
    return sum(len(os.listdir(inbox / part)) for part in ("new", "cur") if (inbox / part).exists())


def _watch(ready: Stage, servers: MailServers) -> None:
    """Add the channel, and wait until the trusted worker has looked into its mailbox."""
    from apps.messengers.enums import ChannelKind
    from apps.messengers.models import Channel
    from apps.messengers.services import add_channel
    from kernel.tenancy import tenant_scope

    tenant, deployment = ready.deployment.tenant_id, ready.deployment.pk
    with tenant_scope(tenant):
        row = add_channel(
            ChannelKind.EMAIL, deployment_id=deployment, name="Support", values=servers.settings, actor="user:bench"
        )

    def is_watched() -> bool:
        with tenant_scope(tenant):
            return bool(Channel.objects.get(pk=row.pk).kept)

    _wait_until(is_watched)


def _wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise RuntimeError("no answer came")
        time.sleep(0.005)


@contextlib.contextmanager
def _running(ready: Stage, program: Callable[[dict[str, str]], Program]) -> Iterator[subprocess.Popen[bytes]]:
    process = program({**os.environ, **ready.env}).start()
    log = (Path(ready.env["SILAS_VAR"]) / f"{program.__name__}.log").open("wb")
    threading.Thread(target=lambda: log.writelines(process.stdout or ()), daemon=True).start()
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
