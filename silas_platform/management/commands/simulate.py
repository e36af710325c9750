"""Simulate conversations with a deployment, in an isolated copy of its policy (docs/simulations.md)."""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.simulations import queries, runner, services
from apps.simulations.enums import ACTIVE, Outcome
from apps.simulations.models import SimulationRun, SimulationSuite
from apps.simulations.reports import ERROR, Run, changes, read, write_json, write_junit
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_key
from kernel.errors import SilasError
from kernel.tenancy import in_scope, tenant_scope
from silas_platform.up.processes import spawn

LOOK_SECONDS = 0.5
ACTOR = "command:simulate"


class Command(BaseCommand):
    help = (
        "Simulates conversations with a deployment. Exit code: 0 all passed, 1 a scenario failed, 2 the run is not"
        " whole (stopped, budget spent, nothing to play)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("deployment", help="the public key of the deployment")
        parser.add_argument("--suite", default="", help="the name of one suite; all of them without it")
        parser.add_argument("--load", metavar="FOLDER", type=Path, help="first write the scenarios of these YAML files")
        parser.add_argument("--only", metavar="WORDS", default="", help="scenarios whose name has these words")
        parser.add_argument("--workers", type=int, default=1, help="processes that play scenarios; 0: only wait")
        parser.add_argument(
            "--at-once", type=int, default=1, help="conversations that each process holds at once, for outside models"
        )
        parser.add_argument("--budget", metavar="USD", type=_usd, help="begin no scenario once this is spent")
        parser.add_argument("--json", metavar="FILE", type=Path, help="write every conversation and its result")
        parser.add_argument("--junit", metavar="FILE", type=Path, help="write the results for CI")
        parser.add_argument("--compare", metavar="FILE", type=Path, help="an earlier --json: say what changed since")
        parser.add_argument("--resume", metavar="RUN", type=UUID, help="go on with a run that broke off")
        parser.add_argument("--serve", metavar="RUN", type=UUID, help="only help to play this run")

    def handle(self, *, deployment: str, **given: Any) -> None:
        chatbot = deployment_by_key(deployment)
        if chatbot is None:
            raise CommandError(f"There is no deployment {deployment}.")
        if given["serve"]:
            asyncio.run(_play(chatbot.tenant_id, given["serve"], at_once=given["at_once"]))
            return
        try:
            before = read(given["compare"]) if given["compare"] else None
            runs = self._runs(chatbot, given)
        except (OSError, ValueError, yaml.YAMLError, SilasError) as error:
            raise CommandError(str(error), returncode=ERROR) from None
        began, whole = time.monotonic(), Run(model="-", results=[])
        for begin in runs:
            part = self._run(chatbot, begin(whole.cost_usd), given["workers"], max(given["at_once"], 1))
            whole.results += part.results
            whole.left_out += part.left_out
            whole.model = part.model
        if given["json"]:
            write_json(whole, given["json"])
        if given["junit"]:
            write_junit(whole, given["junit"])
        good = sum(one.passed for one in whole.results)
        turns = sum(len(one.conversation) for one in whole.results)
        self.stdout.write(
            f"{good} of {len(whole.results)} scenarios passed; {turns} turns, {len(whole.left_out)} left out,"
            f" {whole.cost_usd:.4f} USD, {time.monotonic() - began:.0f} s"
        )
        if before is not None:
            self.stdout.write("\n".join(changes(before, whole) or ["nothing changed since the earlier run"]))
        if whole.exit_code:
            raise SystemExit(whole.exit_code)

    def _runs(self, chatbot: Deployment, given: dict[str, Any]) -> list[Callable[[Decimal], SimulationRun | None]]:
        """What to run, one after another. Each is begun with what those before it have cost."""
        if given["resume"]:
            return [lambda _spent: _resume(chatbot, given["resume"])]
        suites = _suites(chatbot, given["suite"], given["load"])
        return [partial(self._begin, chatbot, suite, given) for suite in suites]

    def _begin(
        self, chatbot: Deployment, suite: SimulationSuite, given: dict[str, Any], spent: Decimal
    ) -> SimulationRun | None:
        budget = None if given["budget"] is None else max(given["budget"] - spent, Decimal(0))
        with tenant_scope(chatbot.tenant_id):
            try:
                return services.run_simulation(chatbot, suite, budget_usd=budget, only=given["only"], by=ACTOR)
            except SilasError as nothing:
                self.stderr.write(f"{suite.name}: {nothing}")
                return None

    def _run(self, chatbot: Deployment, run: SimulationRun | None, workers: int, at_once: int) -> Run:
        if run is None:
            return Run(model="-", results=[])
        # A helper finds nothing to play until one of the processes has prepared the copy.
        manage = str(settings.BASE_DIR / "manage.py")
        argv = [
            sys.executable,
            manage,
            "simulate",
            chatbot.public_key,
            "--serve",
            str(run.pk),
            "--at-once",
            str(at_once),
        ]
        helpers = [spawn(argv) for _ in range(1, workers)]
        asyncio.run(_play(chatbot.tenant_id, run.pk, serves=workers > 0, at_once=at_once))
        for helper in helpers:
            helper.wait()
        with tenant_scope(chatbot.tenant_id):
            run = queries.run(run.pk)
            report, rows = queries.report_of(run), list(run.results.order_by("place"))
        for row in rows:
            if row.outcome != Outcome.PASSED:
                lines = [
                    f"{Outcome(row.outcome).value:8} {run.suite.name}: {row.name}",
                    *(f"  {one}" for one in row.failures),
                ]
                self.stdout.write("\n".join(lines))
        players = ", ".join(dict.fromkeys(row.player or "script" for row in rows if row.finished_at)) or "-"
        self.stdout.write(
            f"{run.suite.name}: visitors played by {players}; run {run.pk} {run.status} {run.reason}".rstrip()
        )
        return report


def _resume(chatbot: Deployment, run_id: UUID) -> SimulationRun:
    with tenant_scope(chatbot.tenant_id):
        try:
            return services.resume(run_id, by=ACTOR)
        except SilasError as refusal:
            raise CommandError(str(refusal), returncode=ERROR) from None


async def _play(tenant_id: UUID, run_id: UUID, *, at_once: int, serves: bool = True) -> None:
    """Play what is due of the company until this run has ended."""
    while True:
        if serves:
            await runner.serve_due(tenant_id=tenant_id, at_once=at_once)
        status = await in_scope(tenant_id, _status, run_id)
        if status not in ACTIVE:
            return
        await asyncio.sleep(LOOK_SECONDS)


def _status(run_id: UUID) -> str:
    return str(SimulationRun.objects.values_list("status", flat=True).get(pk=run_id))


def _suites(chatbot: Deployment, name: str, folder: Path | None) -> list[SimulationSuite]:
    with tenant_scope(chatbot.tenant_id):
        if folder is not None and not services.load_suites(chatbot, folder):
            raise ValueError(f"{folder} has no scenarios for {chatbot.public_key}")
        found = [suite for suite in queries.suites_of(chatbot) if name in ("", suite.name)]
    if not found:
        raise ValueError(f"{chatbot.public_key} has no suite {name}".rstrip())
    return found


def _usd(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise CommandError(f"{text} is not an amount") from None
    if not amount.is_finite() or amount <= 0:
        raise CommandError(f"{text} is not a positive amount")
    return amount
