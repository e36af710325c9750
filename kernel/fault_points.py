"""Named points between admission and acknowledgement at which tests can break a process on purpose.

`reach("guard.admitted")` does nothing unless `arm` named a folder, which only the tests' settings allow (a process that
finds the variable under other settings refuses to start). A fault is a file in that folder, named after the point, with
one action a line, one for each time the point is reached. A process takes a fault by renaming its file, so each fault
happens once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

VARIABLE = "SILAS_FAULT_POINTS"

POINTS = MappingProxyType(
    {
        "approvals.decided": "the decision, its token and what follows are written, not yet committed",
        "bus.before_poke": "a message is committed, no worker has been woken",
        "approvals.committed": "the decision is committed, whoever pressed has no answer yet",
        "bus.leased": "a message is leased, not yet committed",
        "work.leased": "the executor's lease is committed, no attempt has begun",
        "work.begun": "the attempt is counted and committed, its model has not been asked",
        "guard.admitted": "a call is admitted and reserved for, not yet committed",
        "guard.before_dispatch": "the admission is committed, the handler has not been called",
        "guard.after_dispatch": "the handler has come back, its effect has not been stored",
        "guard.before_settle": "the effect is written, the end of the call is about to be committed",
        "guard.after_settle": "effect and settlement are committed, the agent has not been told",
        "autonomy.begun": "a session is begun and committed, its first phase has done nothing",
        "autonomy.intake": "a session is in intake",
        "autonomy.analysis": "a session is in analysis, nothing of it has been looked at",
        "autonomy.drafting": "a session is in drafting, nothing has been written",
        "autonomy.ethics_review": "a session is in ethics review",
        "autonomy.delivery": "a session is in delivery, its result has not gone anywhere",
        "autonomy.dispatched": "a trigger's session and its next time are written, not yet committed",
        "autonomy.before_end": "the end of a session is written with its acknowledgement, not yet committed",
        "work.before_verification": "the agent has ended, no check has run",
        "work.after_verification": "the checks have run, their report is not stored",
        "work.before_ack": "the end of the item is written with its acknowledgement, not yet committed",
        "work.after_ack": "the end of the item is committed",
    }
)


class Action(StrEnum):
    PASS = "pass"
    KILL = "kill"  # -9: no handler, no rollback that we could send
    STOP = "stop"  # stopped until SIGCONT
    HANG = "hang"  # computes without end, holds the interpreter and handles no signal
    RAISE = "raise"


class Fault(Exception):
    """Raised at a point by `Action.RAISE`."""


_folder: Path | None = None


def arm(folder: str) -> None:
    """Look for faults in `folder` from now on; an empty name disarms."""
    global _folder
    _folder = Path(folder) if folder else None


def reach(point: str) -> None:
    """Pass a named point; if a test has planted a fault for it, take the fault and carry it out."""
    if _folder is not None:
        _take_fault(_folder, point)


def plant(folder: Path, point: str, *actions: Action) -> None:
    """Plant a fault for the next process that reaches the point. For tests. The file appears atomically."""
    _write_fault(folder, point, actions)


def processes_that_took(folder: Path, point: str) -> list[int]:
    """Ids of the processes that took a fault at this point. For tests."""
    return [int(path.suffix[1:]) for path in folder.glob(f"{point}.taken.*")]


def _write_fault(folder: Path, point: str, actions: Sequence[str]) -> None:
    draft = folder / f".{point}.{os.getpid()}"
    draft.write_text("\n".join(actions))
    draft.rename(folder / point)


def _take_fault(folder: Path, point: str) -> None:
    fault = folder / point
    mine = folder / f"{point}.taken.{os.getpid()}"
    if point not in POINTS:
        raise KeyError(point)
    try:
        fault.rename(mine)
    except FileNotFoundError:
        return
    action, *later = mine.read_text().split()
    if later:
        _write_fault(folder, point, later)
    match Action(action):
        case Action.PASS:
            mine.unlink()
        case Action.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Action.STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        case Action.HANG:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            pow(3, 10**10)
        case Action.RAISE:
            raise Fault(point)
