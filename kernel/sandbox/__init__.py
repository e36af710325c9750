"""Run one untrusted command and come back alive (spec 9.1, 5.3).

No network but listed places, no host files, no host environment, its own processes; bounded time, memory, output, disk
and process count. Without a backend that can enforce all of this nothing runs: `SandboxUnavailable`. Blocking and
thread-safe; never call it with a database transaction open.
"""

from kernel.sandbox.backends import Backend, Choice, Kind, backend, configure
from kernel.sandbox.runner import run
from kernel.sandbox.session import Session, SessionClosed, open_session
from kernel.sandbox.spec import EgressUsage, SandboxResult, SandboxSpec, SandboxUnavailable

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
