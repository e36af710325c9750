"""Seed the demo into an empty database once, and return its logins (contract interfaces, Demo data).

Interrupted seeding is resumed by the next run. The login lines are kept under `var`, mode 0600, so
that later starts can print them without querying the database.
"""

from collections.abc import Mapping

from silas_platform.up.environment import for_program, var_directory
from silas_platform.up.preparation import run_command
from silas_platform.up.supervisor import Supervisor


def demo_logins(env: Mapping[str, str], *, fresh: bool, supervisor: Supervisor) -> list[str]:
    """The `demo-login …` lines; seeds the database first when `fresh`. Raises `StartRefused` when that fails."""
    kept = var_directory(env) / "demo-logins"
    begun = kept.with_name("demo-logins.begun")
    if not fresh and not begun.exists():
        return kept.read_text().splitlines() if kept.exists() else []
    supervisor.screen.show("demo", "filling the empty database with the demo tenants")
    # Like web: the approvers' keys are sealed with the signing key, which only web processes may hold.
    web = for_program(env, "web")
    lines = run_command("seed_demo", web, begun, supervisor, failure="the demo could not be created:")
    logins = [line for line in lines if line.startswith("demo-login ")]
    begun.write_text("".join(f"{line}\n" for line in logins))
    if not supervisor.stopping:
        begun.rename(kept)
    return logins
