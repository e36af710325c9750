"""Run one untrusted command and come back alive (spec 9.1, 5.3).

No network but listed places, no host files, no host environment, its own processes; bounded time, memory, output, disk
and process count. Without a backend that can enforce all of this nothing runs: `SandboxUnavailable`. Blocking and
thread-safe; never call it with a database transaction open.
"""

from kernel.sandbox.backends import Backend, Choice, Kind, backend, configure
from kernel.sandbox.runner import run
from kernel.sandbox.spec import Reached, SandboxResult, SandboxSpec, SandboxUnavailable
from kernel.sandbox.talking import Session, SessionOver, session

__all__ = [
    "Backend",
    "Choice",
    "Kind",
    "Reached",
    "SandboxResult",
    "SandboxSpec",
    "SandboxUnavailable",
    "Session",
    "SessionOver",
    "backend",
    "configure",
    "run",
    "session",
]
