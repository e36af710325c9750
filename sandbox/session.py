"""Talk to a script while it runs, line by line, within the limits of any run.

A thread reads its output into lines of bounded length; a line that contains a secret ends the session before the caller
sees it. The caller that opened a session closes it, and gets the run's result then.
"""

import contextlib
import json
import os
import queue
import select
import threading
import time
from types import TracebackType
from typing import Any, Self

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from sandbox.backends import Backend, Docker
from sandbox.execution import Run
from sandbox.runner import backend, prepare_plan, require_supported
from sandbox.spec import SECRET_BYTES, UNREAD_LINES, SandboxResult, SandboxSpec, SandboxUnavailable

_SEND_SECONDS = 10.0


class SessionClosed(SilasError):
    """The script has ended or does not read its input; the result of `close()` says why."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.SESSION_OVER, "the script no longer reads its input")


def open_session(spec: SandboxSpec) -> "Session":
    """Start a session. Raises SandboxUnavailable if nothing can be isolated."""
    return Session(backend(), spec)


class _Talk(Run):
    """A run whose output is read in lines as it comes."""

    def __init__(self, *given: Any) -> None:
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.begun = threading.Event()
        self._line = bytearray()
        super().__init__(*given, talks=True)

    def take(self, name: str, data: bytes) -> None:
        super().take(name, data)
        if name == "report":
            self.begun.set()
        if name == "stdout":
            self._split(data)
            if self.spec.lasting:
                self.buffers[name].clear()

    def _split(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._tell(bytes(self._line) + piece)
            self._line.clear()
        self._line += rest
        # Without a line feed the beginning of a line would grow for ever.
        if len(self._line) > self.spec.line_bytes:
            self.stop("line_limit")

    def _tell(self, line: bytes) -> None:
        if self.reason:
            return
        if len(line) > self.spec.line_bytes:
            self.stop("line_limit")
        elif self.spec.secret is not None and self.is_leaked([line]):
            self.stop("secret_leaked")
        # A lasting run has no bound on all that it writes, so what waits unread has one.
        elif self.spec.lasting and self.lines.qsize() >= UNREAD_LINES:
            self.stop("output_limit")
        else:
            self.lines.put(line.decode("utf-8", "replace"))

    def follow_to_the_end(self) -> None:
        try:
            self.follow()
        finally:
            self.begun.set()
            self.lines.put(None)


class Session:
    """One conversation. Only the thread that opened it speaks; it is a context manager that closes it."""

    def __init__(self, backend: Backend, spec: SandboxSpec) -> None:
        require_supported(backend, spec)
        if isinstance(backend, Docker):
            raise SandboxUnavailable("a container cannot be talked with: choose SILAS_SANDBOX=subprocess")
        self._spec, self._started = spec, time.monotonic()
        self._result: SandboxResult | None = None
        self._heard_all = False
        self._stack = contextlib.ExitStack()
        plan = self._stack.enter_context(prepare_plan(spec))
        try:
            self._begin(lambda: _Talk(backend, plan, spec))
            if spec.secret is not None:
                self._feed("secret", _as_line(spec.secret))
        except BaseException:
            self._stack.close()
            raise

    def send_line(self, text: str) -> None:
        """Send one line to its input. Raises SessionClosed if it has ended or does not read."""
        if "\n" in text:
            raise SilasError(ErrorCode.LINE_INVALID, "a line holds no line feed")
        self._feed("stdin", text.encode() + b"\n")

    def send_secret(self, secret: bytes) -> None:
        """Send one more JSON object to its secret descriptor, as a line; its texts may not come back either."""
        if len(secret) > SECRET_BYTES or self._spec.secret is None:
            raise SilasError(ErrorCode.SECRET_INVALID, "this session takes no such secret")
        line = _as_line(secret)
        # Before it is sent: the script may write it back at once.
        self._run.secrets.append(secret)
        self._feed("secret", line)

    def read_line(self, timeout: float) -> str | None:
        """The next line, or None: nothing came in this time, or it has ended (`is_over`)."""
        if self._heard_all:
            return None
        try:
            line = self._run.lines.get(timeout=max(timeout, 0))
        except queue.Empty:
            return None
        self._heard_all = line is None
        return line

    @property
    def is_over(self) -> bool:
        """Whether it has ended and all its lines have been read."""
        return self._heard_all

    def close(self, grace_seconds: float = 2.0) -> SandboxResult:
        """End its input; a script that is still running after the grace period is stopped. Idempotent."""
        if self._result is None:
            self._run.ends.stop_feeding("stdin")
            self._run.ends.stop_feeding("secret")
            self._thread.join(grace_seconds)
            if self._thread.is_alive():
                self._run.stop("stopped")
                self._thread.join()
            self._run.end()
            self._stack.close()
            self._result = self._run.result(time.monotonic() - self._started)
        return self._result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0 if kind else 2.0)

    def _begin(self, make: Any) -> None:
        """Start the run, once more if a dying keeper lost the request (as `runner` does)."""
        self._follow(make())
        if not self._run.has_begun:
            self._thread.join()
            self._run.end()
            self._run.replace_keeper()
            self._follow(make())

    def _follow(self, run: _Talk) -> None:
        self._run = run
        self._thread = threading.Thread(target=run.follow_to_the_end, name="sandbox-session", daemon=True)
        self._thread.start()
        run.begun.wait()

    def _feed(self, name: str, data: bytes) -> None:
        descriptor = self._run.ends.feeds.get(name)
        if descriptor is None:
            raise SessionClosed
        os.set_blocking(descriptor, False)
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT)
        deadline = time.monotonic() + _SEND_SECONDS
        while data:
            if not poller.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise SessionClosed
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise SessionClosed from None


def _as_line(secret: bytes) -> bytes:
    try:
        held = json.loads(secret)
    except ValueError:
        raise SilasError(ErrorCode.SECRET_INVALID, "a secret is a JSON object") from None
    return json.dumps(held).encode() + b"\n"
