"""`python -m evals [MODEL]`: replay the scripted conversations against a model; exit code 1 when an expectation failed.

On a database of its own with both demo tenants; `builtin:grounded` unless a model string is given, whose key is read
from the environment. A turn that the model did not answer itself counts as missed: another one would be judged.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from bench.stage import servers
from evals.scripts import Script, scripts

BUILTIN = "builtin:grounded"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=BUILTIN, help="a model string, for example anthropic:…")
    parser.add_argument("--only", metavar="WORDS", default="", help="conversations whose name has these words")
    given = parser.parse_args(argv)
    with servers():
        from silas_platform import demo

        demo.seed(progress=lambda line: print(line, file=sys.stderr, flush=True))
        played = asyncio.run(_play(given.model or BUILTIN, given.only))
    return report(played, given.model or BUILTIN)


async def _play(model: str, only: str) -> list[Any]:
    from kernel.tenancy import in_thread

    played = []
    for script in scripts():
        deployment = await in_thread(_deployment, script, model)
        for conversation in script.conversations:
            if only.lower() in conversation.name.lower():
                played.append(await _one(deployment, conversation, model))
    return played


async def _one(deployment: Any, conversation: Any, model: str) -> Any:
    from evals.replay import play

    one = await play(deployment, conversation)
    if model != BUILTIN and one.fallbacks:
        one.misses.append(f"{one.fallbacks} turns were not answered by {model}")
    print(line(one), flush=True)
    return one


def _deployment(script: Script, model: str) -> Any:
    from apps.tenants.queries import deployment_by_key
    from apps.tenants.services import change_deployment
    from kernel.tenancy import tenant_scope

    deployment = deployment_by_key(script.deployment)
    assert deployment is not None, f"no deployment has the key {script.deployment}"
    with tenant_scope(deployment.tenant_id):
        names = dict.fromkeys(("proxy", "planner", "executor"), model)
        return change_deployment(deployment, actor="evals", model_names=names, environment_keys=model != BUILTIN)


def line(one: Any) -> str:
    told = "ok  " if not one.misses else "MISS"
    return "\n".join((f"{told}  {one.turns:2} turns  {one.name}", *(f"      {miss}" for miss in one.misses)))


def report(played: list[Any], model: str) -> int:
    missed = [one for one in played if one.misses]
    turns, wrong = sum(one.turns for one in played), sum(len(one.misses) for one in played)
    good = len(played) - len(missed)
    print(f"\n{model}: {good} of {len(played)} conversations as expected; {turns} turns, {wrong} misses")
    return 1 if missed or not played else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
