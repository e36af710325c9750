"""Follow one run from its start to its result, over pipes whose ends are in this process.

The keeper's overseer enforces the limits; this side bounds the output, holds the backstop clock, runs the proxy,
withholds output that contains a secret, and trusts nothing it reads.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterable

from sandbox import backends
from sandbox.backends import Backend, Plan
from sandbox.keeper_client import replace_keeper
from sandbox.launch import launch_run
from sandbox.leaks import is_leaked, secret_values
from sandbox.proxy import Counts, Proxy
from sandbox.spec import SECRET_BYTES, SandboxResult, SandboxSpec

GRACE_SECONDS = 3.0
CHUNK = 65536
WITHHELD = "[withheld: it held a secret]"
_OUTPUTS = ("stdout", "stderr")


class Ends:
    """Both ends of a run's pipes, until the run's ends are handed over."""

    def __init__(self, spec: SandboxSpec, *, talks: bool) -> None:
        self.streams: dict[str, int] = {}
        self.feeds: dict[str, int] = {}
        self.theirs: dict[str, int] = {}
        for name in (*_OUTPUTS, "report", *(["secret_out"] if spec.secret is not None else [])):
            self.streams[name], self.theirs[name] = os.pipe()
        self.theirs["control"], self.control = os.pipe()
        for name in (*(["secret"] if spec.secret is not None else []), *(["stdin"] if talks or spec.stdin else [])):
            self.theirs[name], self.feeds[name] = os.pipe()
        if spec.egress:
            ours, theirs = socket.socketpair()
            self.streams["door"], self.theirs["door"] = ours.detach(), theirs.detach()

    def given(self) -> tuple[list[int], dict[str, int]]:
        """Descriptors that every run gets, in the keeper's order, and those that only some get."""
        always = (*_OUTPUTS, "report", "control")
        extras = {name: descriptor for name, descriptor in self.theirs.items() if name not in always}
        return [self.theirs[name] for name in always], extras

    def handed_over(self) -> None:
        while self.theirs:
            os.close(self.theirs.popitem()[1])

    def stop_feeding(self, name: str) -> None:
        if name in self.feeds:
            os.close(self.feeds.pop(name))

    def release(self) -> None:
        """Close the control pipe, which orders the run to stop."""
        if self.control >= 0:
            os.close(self.control)
            self.control = -1

    def close(self) -> None:
        self.handed_over()
        self.release()
        for held in (self.feeds, self.streams):
            while held:
                os.close(held.popitem()[1])


class Run:
    """One started run. Its report comes back on one pipe; closing another one stops it.

    `talks`: the caller writes to its input and reads its lines while it runs (`session`).
    """

    def __init__(self, backend: Backend, plan: Plan, spec: SandboxSpec, *, talks: bool = False) -> None:
        self.spec = spec
        self.reason = ""
        self.proxy: Proxy | None = None
        self.buffers = {name: bytearray() for name in (*_OUTPUTS, "report", "secret_out")}
        self.limits = {
            "report": (plan.disk_bytes + spec.artifact_files * 8192 + CHUNK, "sandbox_failed"),
            "secret_out": (SECRET_BYTES, "output_limit"),
        }
        self.secrets = [spec.secret] if spec.secret is not None else []
        self.deadline = time.monotonic() + spec.timeout_seconds + GRACE_SECONDS
        self._stopping = threading.Lock()
        self.ends = Ends(spec, talks=talks)
        given = {} if talks else {"secret": spec.secret, "stdin": spec.stdin}
        self._unfed = {name: data for name, data in given.items() if data}
        try:
            self._keeper = launch_run(backend, plan, spec, *self.ends.given())
        except BaseException:
            self.ends.close()
            raise
        self.ends.handed_over()

    @property
    def has_begun(self) -> bool:
        """Whether the overseer has reported its process id, which it does first."""
        return bool(self.buffers["report"])

    def replace_keeper(self) -> None:
        """Replace a keeper that lost its request; its socket may stay open for a moment after it died."""
        if self._keeper is not None:
            replace_keeper(self._keeper)

    def follow(self) -> None:
        """Read until all processes inside, and the overseer, have ended, which closes all pipes."""
        poller = select.poll()
        names = {descriptor: name for name, descriptor in self.ends.streams.items()}
        for descriptor in names:
            poller.register(descriptor, select.POLLIN)
        feeds = {self.ends.feeds[name]: name for name in self._unfed}
        for descriptor in feeds:
            poller.register(descriptor, select.POLLOUT)
        while names:
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.kill("timeout")
                return
            for descriptor, _ in poller.poll(left * 1000):
                if descriptor in feeds:
                    self._feed(poller, descriptor, feeds[descriptor])
                elif not self._read(descriptor, names[descriptor]):
                    poller.unregister(descriptor)
                    del names[descriptor]

    def _feed(self, poller: select.poll, descriptor: int, name: str) -> None:
        """Write its input or its secret once, as far as the pipe takes it; close the pipe after that."""
        # A script that does not read its input must not hold this thread, which also keeps the clock.
        os.set_blocking(descriptor, False)
        try:
            self._unfed[name] = self._unfed[name][os.write(descriptor, self._unfed[name]) :]
        except OSError:
            self._unfed[name] = b""  # the reading end is closed
        if not self._unfed[name]:
            poller.unregister(descriptor)
            self.ends.stop_feeding(name)

    def _read(self, descriptor: int, name: str) -> bool:
        if name == "door":
            return self._opened(descriptor)
        data = os.read(descriptor, CHUNK)
        if data:
            self.take(name, data)
        return bool(data)

    def _opened(self, descriptor: int) -> bool:
        """Start the proxy on the listening socket that the keeper hands over once."""
        # A duplicate, because the socket object closes its descriptor and `ends` closes ours.
        with socket.socket(fileno=os.dup(descriptor)) as line:
            _, doors, _, _ = socket.recv_fds(line, 16, 1, socket.MSG_CMSG_CLOEXEC)
        for door in doors:
            private = backends.egress_private()
            self.proxy = Proxy(socket.socket(fileno=door), self.spec, private, lambda: self.stop("egress_limit"))
        return False

    def take(self, name: str, data: bytes) -> None:
        if name in _OUTPUTS:
            used = sum(len(self.buffers[output]) for output in _OUTPUTS)
            room, reason = self.spec.output_bytes - used, "output_limit"
        else:
            limit, reason = self.limits[name]
            room = limit - len(self.buffers[name])
        self.buffers[name] += data[: max(room, 0)]
        # Nothing is read any more when the report is too long, so the overseer could not end it in order.
        if len(data) > room:
            (self.kill if name == "report" else self.stop)(reason)

    def stop(self, reason: str) -> None:
        """Stop in order: the overseer kills all processes and reports. From any thread."""
        with self._stopping:
            self.reason = self.reason or reason
            self.ends.release()

    def kill(self, reason: str) -> None:
        """Kill an overseer that does not answer; its sandbox dies with it. Its process id is reported before anything
        runs."""
        self.stop(reason)
        overseer = _first_chunk(bytes(self.buffers["report"]))
        if overseer.isdigit():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(overseer), signal.SIGKILL)

    def end(self) -> None:
        if self.proxy is not None:
            self.proxy.close()
        self.stop(self.reason)
        self.ends.close()

    def result(self, seconds: float) -> SandboxResult:
        reason, code, artifacts = _parse_report(bytes(self.buffers["report"]))
        reason = self.reason or reason
        stdout, stderr = (self.buffers[name].decode("utf-8", "replace") for name in _OUTPUTS)
        # Nothing ran, so this is the keeper's own message and no output of the command.
        if reason == "sandbox_failed" and "detail" in artifacts:
            stderr += artifacts["detail"].decode("utf-8", "replace")
        secret_out = self._secret_out()
        if self._is_leaked(artifacts):
            reason, stdout, stderr = "secret_leaked", WITHHELD, WITHHELD
        elif secret_out is None and self.buffers["secret_out"]:
            reason = reason or "secret_malformed"
        counts = self.proxy.counts if self.proxy else Counts()
        return SandboxResult(
            exit_code=code,
            stdout=stdout,
            stderr=stderr,
            artifacts={} if reason else artifacts,
            reason=reason,
            duration_seconds=round(seconds, 4),
            secret_out=secret_out,
            egress=counts.reached(),
            egress_refused=counts.refused,
        )

    def is_leaked(self, outputs: Iterable[bytes]) -> bool:
        """Whether an output contains a text of the secrets that were put in or handed back."""
        held = [*self.secrets, bytes(self.buffers["secret_out"])]
        values = {value for secret in held for value in secret_values(secret) or ()}
        return bool(values) and is_leaked(values, outputs)

    def _secret_out(self) -> bytes | None:
        """Also returned for a failed run: a change on the other side must not be lost."""
        handed = bytes(self.buffers["secret_out"])
        return handed if secret_values(handed) is not None else None

    def _is_leaked(self, artifacts: dict[str, bytes]) -> bool:
        if self.spec.secret is None:
            return False
        # A secret can leave in the name of a file as well.
        names = [name.encode("utf-8", "replace") for name in artifacts]
        return self.is_leaked([*(bytes(self.buffers[output]) for output in _OUTPUTS), *names, *artifacts.values()])


def _parse_report(report: bytes) -> tuple[str, int | None, dict[str, bytes]]:
    """(reason, exit code, artifacts) of a report; a malformed one is `sandbox_failed`."""
    chunks, offset = [], 0
    while offset + 8 <= len(report):
        (size,) = struct.unpack_from("!Q", report, offset)
        chunks.append(report[offset + 8 : offset + 8 + size])
        offset += 8 + size
    # An overseer that was killed leaves a report that breaks off, which must not pass for a result.
    if offset != len(report) or len(chunks) < 3 or not len(chunks) % 2:
        return "sandbox_failed", None, {}
    _, reason, code, *files = chunks
    names = [name.decode("utf-8", "replace") for name in files[::2]]
    return reason.decode(), int(code) if code else None, dict(zip(names, files[1::2], strict=True))


def _first_chunk(report: bytes) -> bytes:
    size = struct.unpack_from("!Q", report)[0] if len(report) >= 8 else 0
    return report[8 : 8 + size]
