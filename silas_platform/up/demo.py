"""Is there a demo to show, and how does one log in to it? (contract interfaces, Demo data)

An empty database is filled once; a filling that was interrupted is taken up again by the next run. The login lines are
kept under `var`, mode 0600, so that later starts can print them without asking the database.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from silas_platform.up import processes, programs
from silas_platform.up.environment import ROOT, StartRefused, for_program, var_directory
from silas_platform.up.supervisor import Supervisor


def demo_logins(env: Mapping[str, str], *, fresh: bool, supervisor: Supervisor) -> list[str]:
    """The `demo-login …` lines; fills the database first when `fresh`. Raises `StartRefused` when that fails."""
    kept = var_directory(env) / "demo-logins"
    begun = kept.with_name("demo-logins.begun")
    if not fresh and not begun.exists():
        return kept.read_text().splitlines() if kept.exists() else []
    supervisor.screen.show("demo", "filling the empty database with the demo tenants")
    said = _seed(env, begun, supervisor)
    logins = [line for line in said if line.startswith("demo-login ")]
    begun.write_text("".join(f"{line}\n" for line in logins))
    if not supervisor.stopping:
        begun.rename(kept)
    return logins


def _seed(env: Mapping[str, str], begun: Path, supervisor: Supervisor) -> list[str]:
    # As web: the approvers' keys are sealed with the signing key, which only web processes may hold.
    told = programs.marked_env(for_program(env, "web"))
    with open(begun, "wb", opener=_private) as output:
        process = processes.spawn([sys.executable, "manage.py", "seed_demo"], env=told, cwd=ROOT, output=output)
    supervisor.run_until(lambda: process.poll() is not None)
    processes.end_group(process)
    said = begun.read_text(errors="replace").splitlines()
    if process.returncode and not supervisor.stopping:
        raise StartRefused("\n".join(["the demo could not be made:", *said[-15:]]))
    return said


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
