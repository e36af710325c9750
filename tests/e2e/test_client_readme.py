"""Does the Python client's README get a stranger's agent under the loop? Its blocks run as they are written, but for
the installation's address and the key, against a live server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

from apps.safety import services
from apps.safety.enums import OperatorAction
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.safety import Agent, Api

CLIENT = Path(__file__).parents[2] / "clients" / "python"


def block(language: str, web: str, key: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", (CLIENT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    return found[1].replace("https://silas.example", web).replace("sk_...", key)


async def run(*command: str, path: Path | None = None) -> str:
    """What the program printed."""
    env = {**os.environ, "PYTHONPATH": str(CLIENT / "src")}
    if path is not None:
        env["PATH"] = f"{path}{os.pathsep}{env['PATH']}"
    program = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await program.communicate()
    return printed.decode()


def let_go_on(tenant: Any, api: Api, user: Any) -> None:
    hold = Agent(tenant, ref=f"api_key:{api.row.pk}").hold()
    with tenant_scope(tenant):
        services.perform_operator_action(hold.pk, OperatorAction.ALLOW, user=user)


async def test_agent_of_the_readme_waits_for_its_person_and_goes_on(
    web: str, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    api = await in_thread(Api, tenant)
    program = tmp_path / "sorter.py"
    program.write_text(block("python", web, api.key))
    assert (await run(sys.executable, str(program))).startswith("held: ")
    await in_thread(let_go_on, tenant, api, owner)
    assert await run(sys.executable, str(program)) == "deleted 42\n"
    assert (await run(sys.executable, str(program))).startswith("held: ")


async def test_hook_of_the_readme_says_go_and_no(web: str, tenant: Any, tmp_path: Path) -> None:
    api = await in_thread(Api, tenant)
    hook = tmp_path / "silas-safety-hook"
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m silas_safety.hook\n')
    hook.chmod(0o755)
    go, why, no = (await run("sh", "-c", block("sh", web, api.key), path=tmp_path)).splitlines()
    assert go == "go"
    assert no == "no"
    assert "stopped" in why
