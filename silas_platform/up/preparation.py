"""Run the steps of a start that need Django, each in a process that ends: preparing the database, filling the demo.

The supervisor itself never imports Django, which would keep 200 MB for the whole run.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from silas_platform.up import processes, programs
from silas_platform.up.environment import ROOT, StartRefused, for_program, var_directory
from silas_platform.up.supervisor import Supervisor

_LINES_SHOWN = 15


@dataclass(frozen=True)
class Prepared:
    """What `manage.py prepare` found out. `setup_path` leads to the first company's set-up while there is none."""

    is_empty: bool
    demo: bool
    allowed_hosts: Sequence[str]
    setup_path: str


def prepare(env: Mapping[str, str], supervisor: Supervisor) -> Prepared | None:
    """Migrate and check; None where a stop was asked for meanwhile. Raises `StartRefused` with what is wrong."""
    output = var_directory(env) / "prepare.log"
    # STATIC_ROOT: nothing is collected here, but WhiteNoise warns where the folder is missing.
    output.with_name("static").mkdir(exist_ok=True)
    lines = _run_command(["prepare"], env, output, supervisor, failure="")
    if supervisor.stopping:
        return None
    *messages, answer = lines
    for message in messages:
        supervisor.screen.say(message)
    return Prepared(**json.loads(answer))


def demo_logins(env: Mapping[str, str], *, fresh: bool, supervisor: Supervisor) -> list[str]:
    """Return the `demo-login …` lines, after seeding the database when it is `fresh` or seeding was interrupted.

    The lines are kept under `var`, mode 0600, so that later starts print them without querying the database (contract
    interfaces, Demo data). Raises `StartRefused` when seeding fails.
    """
    kept = var_directory(env) / "demo-logins"
    begun = kept.with_name("demo-logins.begun")
    if not fresh and not begun.exists():
        return kept.read_text().splitlines() if kept.exists() else []
    supervisor.screen.show("demo", "filling the empty database with the demo tenants")
    # Like web: the approvers' keys are sealed with the signing key, which only web processes may hold.
    web = for_program(env, "web")
    command = ["seed_demo", "--month"]
    lines = _run_command(command, web, begun, supervisor, failure="the demo could not be created:")
    logins = [line for line in lines if line.startswith("demo-login ")]
    begun.write_text("".join(f"{line}\n" for line in logins))
    if not supervisor.stopping:
        begun.rename(kept)
    return logins


def _run_command(
    command: list[str], env: Mapping[str, str], output: Path, supervisor: Supervisor, *, failure: str
) -> list[str]:
    """Run `manage.py <command>` to its end beside the servers, its output in a private file; returns the lines.

    Raises `StartRefused` with `failure` and the last lines when it fails.
    """
    with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        process = processes.spawn(
            [sys.executable, "manage.py", *command], env=programs.marked_env(env), cwd=ROOT, output=file
        )
    supervisor.run_until(lambda: process.poll() is not None)
    processes.end_group(process)
    lines = output.read_text(errors="replace").splitlines()
    if process.returncode and not supervisor.stopping:
        raise StartRefused("\n".join([*([failure] if failure else []), *lines[-_LINES_SHOWN:]]))
    return lines
