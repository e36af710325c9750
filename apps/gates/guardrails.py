"""Run our detectors under guardrails-ai, in a separate sandboxed program (`validator`).

The platform never imports the library: its 113 packages hold two of ours back by a major release, and in a process of
the platform any of them would run beside the keys. Each process starts the program when a gate first needs it, and
again if it died. The program has no network, no secrets and no files but the library and this package, and checks one
text at a time. Failures are raised, and the runner blocks on them. Called by `providers`; `validation` checks whether
it is installed."""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from apps.gates.detectors import catalogue
from apps.gates.detectors.findings import Detection, Span
from apps.gates.detectors.normalise import Spellings
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from sandbox import SandboxSpec, Session, SessionClosed, open_session
from sandbox.backends import PYTHON

_log = logging.getLogger(__name__)
_ROOM = Path(__file__).parent
# Importing the library takes seconds on an idle processor; a text takes milliseconds.
START_SECONDS, ASK_SECONDS = 60.0, 10.0
_READY = "ready"
_WEEK = 7 * 24 * 3600


class NoAnswer(SilasError):
    """The program did not start, did not answer in time, or sent a malformed answer."""

    def __init__(self, why: str) -> None:
        super().__init__(ErrorCode.GUARDRAILS_FAILED, f"guardrails-ai did not respond: {why}")


# Lengths outside of the pattern: `[\w.:-]{1,60}` takes 6 MB.
_Kind = Annotated[str, StringConstraints(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]


class _Reply(BaseModel):
    """The program's reply: `redacted` is base64, `error` is the name of an exception."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    id: int
    failed: bool = True
    score: float = Field(default=0.0, ge=0, le=1)
    spans: list[tuple[int, int, _Kind]] = []
    redacted: str | None = None
    error: str = ""

    @field_validator("redacted")
    @classmethod
    def _as_text(cls, coded: str | None) -> str | None:
        return None if coded is None else base64.b64decode(coded, validate=True).decode("utf-8", "surrogatepass")


def folder() -> Path:
    """The folder of the library (`SILAS_GUARDRAILS`)."""
    return Path(settings.GUARDRAILS_DIR)


def is_installed() -> bool:
    return (folder() / "guardrails").is_dir()


def validate(name: str, text: str, config: Mapping[str, object], spellings: Spellings) -> tuple[bool, Detection]:
    """Run a detector under guardrails-ai: whether the text fails, and what was found. `spellings` are not used; the
    program has its own.

    Raises `InvalidSetting` for an unknown setting, `SandboxUnavailable` where nothing can be isolated, `NoAnswer`.
    """
    least, nothing = catalogue.threshold(name, config), catalogue.detect(name, "", config)
    if not text:  # the library treats an empty text as a failure
        return nothing.score >= least, nothing
    # Base64, because JSON joins two halves of a character that stand side by side.
    reply = _program.ask({"name": name, "text": _coded(text), "config": config})
    return reply.failed, Detection(reply.score, tuple(Span(*span) for span in reply.spans), reply.redacted)


class Program:
    """The running program. Thread-safe: requests are answered one after the other. `room` is the folder of the
    program's file, `validator.py`."""

    def __init__(self, room: Path = _ROOM) -> None:
        self._room = room
        self._asking = threading.Lock()
        self._talk: Session | None = None
        self._home: Path | None = None
        self._asked = 0

    def ask(self, question: Mapping[str, object]) -> _Reply:
        """Ask about one text. Raises `SandboxUnavailable` and `NoAnswer`; the program is ended then, so that a late
        answer is never read."""
        if not self._asking.acquire(timeout=START_SECONDS + ASK_SECONDS):
            raise NoAnswer("too many requests at once")
        try:
            return self._answer(question)
        except BaseException:
            self._end()
            raise
        finally:
            self._asking.release()

    def end(self) -> None:
        with self._asking:
            self._end()

    def _answer(self, question: Mapping[str, object]) -> _Reply:
        self._asked += 1
        line = json.dumps({**question, "id": self._asked}, allow_nan=False)
        answer = self._exchange(line) if self._is_running() else None
        if answer is None:  # not running, or it ended: a text may be checked twice
            self._end()
            self._begin()
            answer = self._exchange(line)
        if answer is None:
            raise NoAnswer("it ended")
        return self._parse(answer)

    def _is_running(self) -> bool:
        return self._talk is not None and self._home == folder()

    def _exchange(self, line: str) -> str | None:
        """Send a line and read the answer; None if the program has ended. Raises `NoAnswer` if it is too slow."""
        assert self._talk is not None
        try:
            self._talk.send_line(line)
        except SessionClosed:
            return None
        answer = self._talk.read_line(ASK_SECONDS)
        if answer is None and not self._talk.is_over:
            raise NoAnswer("too slow")
        return answer

    def _parse(self, answer: str) -> _Reply:
        try:
            reply = _Reply.model_validate_json(answer)
        except ValueError:
            raise NoAnswer("malformed answer") from None
        if reply.id != self._asked:
            raise NoAnswer("answer to another request")
        if reply.error:
            raise NoAnswer(reply.error[:60])
        return reply

    def _begin(self) -> None:
        self._home = folder()
        self._talk = open_session(_spec(self._home, self._room))
        if self._talk.read_line(START_SECONDS) != _READY:
            ended = self._talk.close(0)
            why = (ended.stderr.strip().splitlines() or [ended.reason or str(ended.exit_code)])[-1]
            _log.warning("guardrails_not_started reason=%s", why[:200])
            raise NoAnswer("it does not start")

    def _end(self) -> None:
        if self._talk is not None:
            self._talk.close(0)
            self._talk = None


def _spec(library: Path, room: Path) -> SandboxSpec:
    return SandboxSpec(
        [PYTHON, "-I", "-S", "/sandbox/gates/validator.py", "/sandbox/library"],
        read_only={"library": library, "gates": room},
        timeout_seconds=_WEEK,
        cpu_seconds=_WEEK,
        memory_mb=1024,
        disk_mb=16,
        line_bytes=4 << 20,
        output_bytes=8 << 20,
        lasting=True,
    )


def _coded(text: str) -> str:
    """Base64, because JSON would join two adjacent lone surrogates."""
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


_program = Program()


def _reset_after_fork() -> None:
    """The thread that held the lock does not exist in the child, and the program belongs to the parent."""
    global _program
    _program = Program()


os.register_at_fork(after_in_child=_reset_after_fork)
