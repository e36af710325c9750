"""Run one untrusted command and come back alive (spec 9.1, 5.3).

No network but listed places, no host files, no host environment, its own processes; bounded time, memory, output, disk
and process count. Without a backend that can enforce all of this nothing runs: `SandboxUnavailable`. Blocking and
thread-safe; never call it with a database transaction open.
"""

from sandbox.backends import Backend, Choice, Kind, configure
from sandbox.runner import backend, run
from sandbox.session import Session, SessionClosed, open_session
from sandbox.spec import EgressUsage, SandboxResult, SandboxSpec, SandboxUnavailable

__all__ = [
    "Backend",
    "Choice",
    "EgressUsage",
    "Kind",
    "SandboxResult",
    "SandboxSpec",
    "SandboxUnavailable",
    "Session",
    "SessionClosed",
    "backend",
    "configure",
    "open_session",
    "run",
]
