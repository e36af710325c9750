"""`python -m evals [MODEL]`: simulate the scripted conversations with a model.

With runs of simulations (docs/simulations.md), on a database of its own with both demo tenants; `builtin:grounded`
unless a model string is given, whose key is read from the environment. A turn that the model did not
answer itself counts as missed: another one would be judged.

Exit code: 0 when everything came out as expected, 1 when an expectation failed, 2 when the run is not whole (a script
with a mistake, no conversation, the budget spent).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from apps.simulations.reports import ERROR, Result, Run, changes, read, write_json, write_junit
from apps.simulations.scripts import FOLDER, Conversation, Script, scripts
from bench.stage import servers

if TYPE_CHECKING:
    from apps.tenants.models import Deployment

BUILTIN = "builtin:grounded"


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    try:
        before = read(given.compare) if given.compare else None
        chosen = selected(scripts(given.suite), given.only)
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(error, file=sys.stderr)
        return ERROR
    given.model = given.model or BUILTIN
    run = _run(list(dict(chosen)), given)
    if given.json:
        write_json(run, given.json)
    if given.junit:
        write_junit(run, given.junit)
    print(report(run, before))
    return run.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default=BUILTIN, help="a model string, for example anthropic:…")
    parser.add_argument("--suite", metavar="FOLDER", type=Path, default=FOLDER, help="a folder of scripts (YAML)")
    parser.add_argument("--only", metavar="WORDS", default="", help="conversations whose name has these words")
    parser.add_argument("--budget", metavar="USD", type=_usd, help="begin no conversation once this is spent")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every conversation and its result")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write the results for CI")
    parser.add_argument("--compare", metavar="FILE", type=Path, help="an earlier --json: say what changed since")
    return parser


def _usd(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text} is not an amount") from None
    if not amount.is_finite() or amount <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive amount")
    return amount


def selected(found: list[Script], words: str) -> list[tuple[str, Conversation]]:
    """(key of the deployment, conversation) of every conversation whose name has the words, in the order played."""
    pairs = [(script.deployment, one) for script in found for one in script.conversations]
    return [(key, one) for key, one in pairs if words.lower() in one.name.lower()]


def _run(keys: list[str], given: argparse.Namespace) -> Run:
    with servers():
        from silas_platform import demo

        demo.seed(progress=lambda line: print(line, file=sys.stderr, flush=True))
        run = Run(model=given.model, results=[])
        for key in keys:
            _add(run, key, given)
    return run


def _add(run: Run, key: str, given: argparse.Namespace) -> None:
    """Simulate the files' suites of one deployment, as the page and `manage.py simulate` do."""
    from apps.simulations import queries, runner, services
    from kernel.tenancy import tenant_scope

    deployment = _deployment(key, given.model)
    with tenant_scope(deployment.tenant_id):
        suites = services.load_suites(deployment, given.suite)
    for suite in suites:
        left = None if given.budget is None else max(given.budget - run.cost_usd, Decimal(0))
        with tenant_scope(deployment.tenant_id):
            if not suite.scenarios.filter(name__icontains=given.only).exists():
                continue
            begun = services.run_simulation(deployment, suite, budget_usd=left, only=given.only, by="command:evals")
        asyncio.run(runner.serve_due(tenant_id=deployment.tenant_id))
        with tenant_scope(deployment.tenant_id):
            part = queries.report_of(queries.run(begun.pk))
        for result in part.results:
            if given.model != BUILTIN:
                result.misses += fallbacks(result)
            print(line(result), flush=True)
        run.results += part.results
        run.left_out += part.left_out


def fallbacks(result: Result) -> list[str]:
    """A turn that the built-in model answered for the other one is a miss: the wrong one would be judged."""
    count = sum(said.answered_by == BUILTIN for said in result.conversation)
    return [f"the built-in model answered {count} turns"] if count else []


def _deployment(key: str, model: str) -> Deployment:
    from apps.tenants.queries import deployment_by_key
    from apps.tenants.services import change_deployment
    from kernel.tenancy import tenant_scope

    deployment = deployment_by_key(key)
    if deployment is None:
        print(f"no deployment has the key {key}", file=sys.stderr)
        raise SystemExit(ERROR)
    with tenant_scope(deployment.tenant_id):
        names = dict.fromkeys(("proxy", "planner", "executor"), model)
        return change_deployment(deployment, actor="evals", model_names=names, environment_keys=model != BUILTIN)


def line(one: Result) -> str:
    told = "ok  " if one.passed else "MISS"
    return "\n".join(
        (f"{told}  {len(one.conversation):2} turns  {one.name}", *(f"      {miss}" for miss in one.misses))
    )


def report(run: Run, before: Run | None = None) -> str:
    """The totals of a run and what changed since `before`."""
    good = sum(one.passed for one in run.results)
    turns, wrong = sum(len(one.conversation) for one in run.results), sum(len(one.misses) for one in run.results)
    total = f"{good} of {len(run.results)} conversations as expected; {turns} turns, {wrong} misses"
    told = ["", f"{run.model}: {total}; {run.cost_usd:.4f} USD"]
    if run.left_out:
        told.append(f"{len(run.left_out)} conversations were left out: the budget was spent")
    if before is not None:
        told += changes(before, run) or ["nothing changed since the earlier run"]
    return "\n".join(told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
