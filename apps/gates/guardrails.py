"""How do our detectors run under guardrails-ai? In a program of its own (`validator`), which lives in a sandbox.

The library is a folder of packages that the platform never imports. The program is begun when a gate first asks, one a
process, and again after it died. It sees no network, no secret and no file but the library and this room, and is asked
one text at a time. Whatever goes wrong is raised: the runner takes it for a no. Called by `providers`; asked by
`soundness` whether it is there.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from apps.gates.detectors import catalogue
from apps.gates.detectors.findings import Detection, Span
from apps.gates.detectors.normalise import Spellings
from kernel.errors import SilasError
from kernel.sandbox import SandboxSpec, Session, SessionClosed, open_session
from kernel.sandbox.backends import PYTHON

_log = logging.getLogger(__name__)
_ROOM = Path(__file__).parent
# Importing the library takes seconds of a processor that has nothing else to do; a text takes milliseconds.
START_SECONDS, ASK_SECONDS = 60.0, 10.0
_READY = "ready"
_WEEK = 7 * 24 * 3600


class NoAnswer(SilasError):
    """The program does not start, does not answer in time, or answers something else."""

    def __init__(self, why: str) -> None:
        super().__init__("guardrails_failed", f"guardrails-ai gave no answer: {why}", status=503)


class _Said(BaseModel):
    """What the program answers: `redacted` comes in base64, `error` is the name of what went wrong in there."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    id: int
    failed: bool = True
    score: float = Field(default=0.0, ge=0, le=1)
    spans: list[tuple[int, int, Annotated[str, StringConstraints(pattern=r"^[\w.:-]{1,60}$")]]] = []
    redacted: str | None = None
    error: str = ""

    @field_validator("redacted")
    @classmethod
    def _as_text(cls, coded: str | None) -> str | None:
        return None if coded is None else base64.b64decode(coded, validate=True).decode("utf-8", "surrogatepass")


def folder() -> Path:
    """Where the library is, or would be (`SILAS_GUARDRAILS`)."""
    return Path(settings.GUARDRAILS_DIR)


def is_installed() -> bool:
    return (folder() / "guardrails").is_dir()


def validate(name: str, text: str, config: Mapping[str, Any], spellings: Spellings) -> tuple[bool, Detection]:
    """Run a detector under guardrails-ai: whether the text fails, and what was found. `spellings` are not used; the
    program has its own.

    Raises `InvalidSetting` for an unknown setting, `SandboxUnavailable` where nothing can be isolated, `NoAnswer`.
    """
    least, nothing = catalogue.threshold(name, config), catalogue.detect(name, "", config)
    if not text:  # which the library takes for no answer at all, and so for a failed one
        return nothing.score >= least, nothing
    said = _program.ask({"name": name, "text": _coded(text), "config": config})
    return said.failed, Detection(said.score, tuple(Span(*span) for span in said.spans), said.redacted)


class Program:
    """The running program, and how it is asked. Thread-safe: who comes while another one is answered waits. `room` has
    the file that is run, `validator.py`."""

    def __init__(self, room: Path = _ROOM) -> None:
        self._room = room
        self._asking = threading.Lock()
        self._talk: Session | None = None
        self._home: Path | None = None
        self._asked = 0

    def ask(self, question: Mapping[str, Any]) -> _Said:
        """Raises `SandboxUnavailable` and `NoAnswer`; the program is ended then, so that what it may still say is
        heard by nobody."""
        if not self._asking.acquire(timeout=START_SECONDS + ASK_SECONDS):
            raise NoAnswer("too many ask at once")
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

    def _answer(self, question: Mapping[str, Any]) -> _Said:
        self._asked += 1
        line = json.dumps({**question, "id": self._asked}, allow_nan=False)
        answer = self._heard(line) if self._is_there() else None
        if answer is None:  # it was not there, or is no more: a text may be judged twice
            self._end()
            self._begin()
            answer = self._heard(line)
        if answer is None:
            raise NoAnswer("it ended")
        return self._understood(answer)

    def _is_there(self) -> bool:
        return self._talk is not None and self._home == folder()

    def _heard(self, line: str) -> str | None:
        """None when it has ended. Raises `NoAnswer` for silence."""
        assert self._talk is not None
        try:
            self._talk.send_line(line)
        except SessionClosed:
            return None
        answer = self._talk.read_line(ASK_SECONDS)
        if answer is None and not self._talk.is_over:
            raise NoAnswer("too slow")
        return answer

    def _understood(self, answer: str) -> _Said:
        try:
            said = _Said.model_validate_json(answer)
        except ValueError:
            raise NoAnswer("no answer of ours") from None
        if said.id != self._asked:
            raise NoAnswer("an answer to something else")
        if said.error:
            raise NoAnswer(said.error[:60])
        return said

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
    """JSON alone would join two halves of a character that stand side by side."""
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


_program = Program()


def _begin_anew() -> None:
    """Whoever held the lock when we were copied does not exist here, and the program is our parent's."""
    global _program
    _program = Program()


os.register_at_fork(after_in_child=_begin_anew)
