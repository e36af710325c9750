"""Nothing but the guard dispatches a tool (architecture, One guarded call)."""

from __future__ import annotations

import pytest

from apps.guard import registry
from tests.architecture.source import Module, modules

GUARD = "apps.guard"
# Who may run a process at all: the handlers that the guard calls, gates' scripts, the checks of finished work, and tool
# servers in the sandbox.
RUNS_SANDBOXES = {
    "apps.connections.scripts",
    "apps.connections.setup_session",
    "apps.skills",
    "apps.gates",
    "apps.toolservers.stdio_transport",
    "apps.work.verification",
    "sandbox",
    "apps.knowledge.sandboxed_parsing",
    "silas_platform.doctor",
    "apps.imports.runs",
    "apps.messengers.email.intake",
}

# What the composition says once, when a process starts, and the trial run of `silas init`.
CHOOSES_A_SANDBOX = {f"sandbox.{name}" for name in ("Choice", "Kind", "backend", "configure", "egress.parse_places")}
# Unpacks in the sandbox, whoever asks.
READS_ARCHIVES = "sandbox.archives."


def outside(room: str) -> list[Module]:
    return [module for module in modules() if not f"{module.name}.".startswith(f"{room}.")]


def handlers() -> set[str]:
    return {f"{handler.__module__}.{handler.__qualname__}" for handler in registry._handlers.values()}


@pytest.mark.parametrize("private", ["_handler_of", "_handlers"])
def test_only_guard_takes_a_handler_out(private: str) -> None:
    users = [module.name for module in outside(GUARD) for name, _ in module.mentions if name.endswith(f".{private}")]
    assert users == []


def test_handlers_are_registered() -> None:
    assert handlers()


def test_nobody_calls_a_registered_handler() -> None:
    callers = [(module.name, name) for module in outside(GUARD) for name in module.calls if name in handlers()]
    assert callers == []


def test_only_guard_makes_what_a_handler_is_called_with() -> None:
    makers = [module.name for module in outside(GUARD) if "apps.guard.schemas.CallContext" in module.calls]
    assert makers == []


def test_only_known_rooms_run_sandboxes() -> None:
    calls = [(module.name, name) for module in modules() for name in module.calls if name not in CHOOSES_A_SANDBOX]
    users = {user for user, name in calls if name.startswith("sandbox.") and not name.startswith(READS_ARCHIVES)}
    assert {user for user in users if not any(f"{user}.".startswith(f"{room}.") for room in RUNS_SANDBOXES)} == set()


@pytest.mark.parametrize("starter", ["subprocess.", "os.exec", "os.spawn", "os.system", "os.fork", "pty."])
def test_only_sandbox_start_up_and_backups_start_processes(starter: str) -> None:
    users = {module.name for module in modules() for name in module.calls if name.startswith(starter)}
    # A backup runs PostgreSQL's own programs.
    allowed = ("sandbox", "silas_platform.up", "silas_platform.backup")
    assert {user for user in users if not user.startswith(allowed)} == set()
