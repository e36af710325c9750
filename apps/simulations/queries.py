"""Read suites, runs and results. Inside a tenant scope."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from django.db.models import Count, Q, Sum

from apps.simulations.enums import ACTIVE, Outcome, RunStatus
from apps.simulations.models import SimulationResult, SimulationRun, SimulationSuite
from apps.simulations.reports import Difference, Result, Run, differences
from apps.tenants.models import Deployment
from kernel.errors import NotFound


def suites_of(deployment: Deployment) -> list[SimulationSuite]:
    """Suites with the number of their scenarios (`scenario_count`), by name."""
    rows = SimulationSuite.objects.filter(deployment=deployment).annotate(scenario_count=Count("scenarios"))
    return list(rows.order_by("name"))


def suite(suite_id: UUID) -> SimulationSuite:
    """Raises `NotFound`, also for a foreign id."""
    found: SimulationSuite | None = SimulationSuite.objects.select_related("deployment").filter(pk=suite_id).first()
    if found is None:
        raise NotFound()
    return found


def latest_run(
    deployment: Deployment, *, snapshot: str | None = None, suite: SimulationSuite | None = None
) -> SimulationRun | None:
    """The newest run that ended by itself; of exactly this snapshot and of this suite where given. `passed` says how.

    A stopped or failed run proves nothing and is not returned.
    """
    rows = SimulationRun.objects.filter(deployment=deployment, status=RunStatus.FINISHED)
    if snapshot is not None:
        rows = rows.filter(snapshot=snapshot)
    if suite is not None:
        rows = rows.filter(suite=suite)
    return rows.select_related("suite").order_by("-created_at").first()


def newest_run_of(deployment: Deployment, snapshot: str) -> SimulationRun | None:
    """The newest run of exactly this snapshot, however it goes or ended."""
    return SimulationRun.objects.filter(deployment=deployment, snapshot=snapshot).order_by("-created_at").first()


def active_run(suite: SimulationSuite) -> SimulationRun | None:
    """The run of the suite that waits or goes on."""
    return SimulationRun.objects.filter(suite=suite, status__in=ACTIVE).order_by("created_at").first()


def differences_of(run: SimulationRun) -> list[tuple[Difference, str]]:
    """What came out otherwise than in the run that this one is compared with; nothing before it has ended."""
    if run.compared_with is None or run.finished_at is None:
        return []
    return differences(report_of(run.compared_with), report_of(run))


def run(run_id: UUID) -> SimulationRun:
    """Raises `NotFound`, also for a foreign id."""
    rows = SimulationRun.objects.select_related("deployment", "suite", "compared_with")
    found: SimulationRun | None = rows.filter(pk=run_id).first()
    if found is None:
        raise NotFound()
    return found


def runs_of(deployment: Deployment, *, most: int = 30) -> list[SimulationRun]:
    """Runs, newest first, with `good` of `all` scenarios."""
    good = Count("results", filter=Q(results__outcome=Outcome.PASSED))
    rows = SimulationRun.objects.filter(deployment=deployment).select_related("suite")
    return list(rows.annotate(good=good, all=Count("results")).order_by("-created_at")[:most])


def counts(run: SimulationRun) -> dict[str, int]:
    """How many results of the run have each outcome."""
    rows = SimulationResult.objects.filter(run=run).order_by().values_list("outcome").annotate(Count("id"))
    found = dict(rows)
    return {outcome.value: found.get(outcome.value, 0) for outcome in Outcome}


def cost_of(run: SimulationRun) -> Decimal:
    """What the run has cost until now, in US dollars."""
    return Decimal(SimulationResult.objects.filter(run=run).aggregate(total=Sum("cost_usd"))["total"] or 0)


def budget_left(run_id: UUID) -> Decimal | None:
    """What the run may still spend, in US dollars; None without a budget."""
    found = run(run_id)
    return None if found.budget_usd is None else max(found.budget_usd - cost_of(found), Decimal(0))


def report_of(run: SimulationRun) -> Run:
    """The run as it is written to files and compared."""
    rows = list(SimulationResult.objects.filter(run=run).order_by("place"))
    played = [row for row in rows if row.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.ERROR)]
    return Run(
        model=", ".join(dict.fromkeys(said.answered_by for row in played for said in row.said)) or "-",
        results=[
            Result(
                name=row.name,
                misses=row.failures,
                cost_usd=row.cost_usd,
                player=row.player,
                ending=row.ending,
                conversation=row.said,
            )
            for row in played
        ],
        left_out=[row.name for row in rows if row not in played],
    )
