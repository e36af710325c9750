"""Search everything that a run writes or says for a secret outside of its seal.

A `Watch` listens to every logger, to tracers, and to everything that goes over Redis (messages to workers, frames to
sockets, caches). When asked, it searches every table as the superuser, the environment and arguments of every process
(also when a script has stopped itself for that), and the files that a run may leave. `found` names the places where a
secret is, plain or in a usual encoding.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis
from django.conf import settings
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, NoOpTracer, NoOpTracerProvider
from psycopg import sql

from sandbox.leaks import is_leaked

LOG, WIRE, TABLES, PROCESSES, FILES, TRACES = "log", "redis", "tables", "processes", "files", "traces"
# A line of a script that wants to be looked at.
STOPS = "import signal; signal.raise_signal(signal.SIGSTOP)"
_END = "watch-ends-here"


_HEARD = (LOG, WIRE, PROCESSES, FILES, TRACES)


class _Span(NonRecordingSpan):
    """Records everything that a span is given: attributes, events, exceptions, a status."""

    def __init__(self, heard: list[bytes]) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.heard = heard

    def is_recording(self) -> bool:
        return True

    def _take(self, *args: Any, **given: Any) -> None:
        self.heard.append(f"{args!r} {given!r}".encode())

    set_attribute = set_attributes = add_event = add_link = set_status = update_name = record_exception = _take


class _Tracers(NoOpTracerProvider, NoOpTracer):
    """Provides this one tracer to all callers."""

    def __init__(self, heard: list[bytes]) -> None:
        self.heard = heard

    def get_tracer(self, *_: Any, **__: Any) -> _Tracers:
        return self

    def start_span(self, *args: Any, **given: Any) -> _Span:
        self.heard.append(f"{args!r} {given!r}".encode())
        return _Span(self.heard)

    @contextlib.contextmanager
    def start_as_current_span(self, *args: Any, **given: Any) -> Iterator[_Span]:  # type: ignore[override]  # takes any
        yield self.start_span(*args, **given)


class _Ear(logging.Handler):
    def __init__(self, heard: list[bytes]) -> None:
        super().__init__(logging.DEBUG)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(logging.Formatter().format(record).encode() + repr(record.__dict__).encode())


@dataclass
class Watch:
    """`told`: what a person was shown, sent or asked, added by the test itself under its own name."""

    superuser_dsn: str
    secrets: tuple[str, ...]
    ready: threading.Event = field(default_factory=threading.Event)
    heard: dict[str, list[bytes]] = field(default_factory=lambda: {place: [] for place in _HEARD})

    def told(self, where: str, what: bytes | str) -> None:
        self.heard.setdefault(where, []).append(what if isinstance(what, bytes) else what.encode())

    def found(self) -> list[str]:
        """Every place in which one of the secrets stands; the tables by their names."""
        self.look_at_files()
        places = [where for where, said in self.heard.items() if is_leaked(self.secrets, said)]
        return sorted([*places, *self._tables()])

    def look_at_processes(self) -> None:
        """What every process of this machine was started with, as far as it can be read: ask while a script runs."""
        for folder in Path("/proc").glob("[0-9]*"):
            for name in ("environ", "cmdline"):
                with contextlib.suppress(OSError):
                    self.heard[PROCESSES].append((folder / name).read_bytes())

    @contextlib.contextmanager
    def looking_at_stopped(self) -> Iterator[list[str]]:
        """Scripts that stop themselves (`STOPS`) are looked at and go on. Gives whom it looked at: their file
        names."""
        seen: list[str] = []
        over = threading.Event()
        looker = threading.Thread(target=self._look_at_stopped, args=(over, seen), daemon=True)
        looker.start()
        try:
            yield seen
        finally:
            over.set()
            looker.join(30)

    def _look_at_stopped(self, over: threading.Event, seen: list[str]) -> None:
        while not over.wait(0.05):
            for process, script in _stopped():
                self.look_at_processes()
                self.look_at_files()
                seen.append(script)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def look_at_files(self) -> None:
        """Logs of the servers, what runs lay out for their sandboxes, and the cores that a crash might leave."""
        temporary, here = Path(tempfile.gettempdir()), Path.cwd()
        places = [path for path in _files_under(Path(os.environ["SILAS_VAR"])) if path.suffix == ".log"]
        places += [path for folder in temporary.glob("sandbox-*") for path in _files_under(folder)]
        places += [*here.glob("core*"), *temporary.glob("core*"), *Path("/var/crash").glob("*")]
        for path in places:
            with contextlib.suppress(OSError):
                self.heard[FILES].append(path.read_bytes() if path.is_file() else b"")

    def _tables(self) -> list[str]:
        """Rows of every tenant and of none, in every column: bytes are read as text and as the hexadecimal that they
        are written in."""
        dresses = [f"%{dress}%" for secret in self.secrets for dress in _dresses(secret)]
        with psycopg.connect(self.superuser_dsn, autocommit=True) as line:
            names = line.execute(
                "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace IN"
                " (SELECT oid FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema')"
            ).fetchall()
            ask = sql.SQL("SELECT 1 FROM {} AS t WHERE t::text LIKE ANY(%s) LIMIT 1")
            return [name for (name,) in names if line.execute(ask.format(sql.SQL(name)), [dresses]).fetchone()]


def _files_under(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder`; whatever another run removes meanwhile is passed over."""
    for place, _, names in os.walk(folder):
        yield from (Path(place, name) for name in names)


def _stopped() -> list[tuple[int, str]]:
    """Return the scripts of skills that have stopped themselves: process and file name."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            last = (folder / "cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0")[2].decode("utf-8", "replace")
            if last.startswith("/sandbox/skill/") and "State:\tT" in (folder / "status").read_text():
                found.append((int(folder.name), Path(last).name))
    return found


def _dresses(secret: str) -> list[str]:
    value = secret.encode()
    coded = [b64encode(b"\0" * before + value).decode()[4:-4] for before in range(3)]
    return [secret, secret[::-1], value.hex(), b64encode(value).decode().rstrip("="), *coded]


@contextlib.contextmanager
def watching(superuser_dsn: str, *secrets: str) -> Iterator[Watch]:
    """Watch everything from here on; what Redis was sent has arrived when this is over."""
    watch = Watch(superuser_dsn, secrets)
    ear, root = _Ear(watch.heard[LOG]), logging.getLogger()
    before = root.level
    deaf = [one for one in logging.Logger.manager.loggerDict.values() if _hears_alone(one)]
    for logger in (root, *deaf):
        logger.addHandler(ear)
    root.setLevel(logging.DEBUG)
    tracers = trace._TRACER_PROVIDER
    trace._TRACER_PROVIDER = _Tracers(watch.heard[TRACES])
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=None)  # a monitor hears nothing for long
    monitor = threading.Thread(target=_listen, args=(client, watch), daemon=True)
    try:
        monitor.start()
        assert watch.ready.wait(30)
        yield watch
        client.echo(_END)
        monitor.join(30)
        assert not monitor.is_alive()
    finally:
        client.close()
        trace._TRACER_PROVIDER = tracers
        root.setLevel(before)
        for logger in (root, *deaf):
            logger.removeHandler(ear)


def _hears_alone(logger: Any) -> bool:
    return isinstance(logger, logging.Logger) and not logger.propagate


def _listen(client: redis.Redis, watch: Watch) -> None:
    with client.monitor() as line:
        watch.ready.set()
        while True:
            said = str(line.next_command())
            if _END in said:
                return
            watch.heard[WIRE].append(said.encode())
