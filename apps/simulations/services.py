"""Write suites, start and stop runs, and record what came of each scenario. Inside a tenant scope.

A run is rows first: its results wait, one message on the bus stands for each chunk of them, and whichever process takes
the message plays it. Recording a result is a conditional update, so a chunk delivered twice counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db.models import F
from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.simulations import queries
from apps.simulations.enums import ACTIVE, RESUMABLE, Ending, Origin, Outcome, Player, Reviewer, RunStatus
from apps.simulations.models import Scenario, SimulationResult, SimulationRun, SimulationSuite
from apps.simulations.schemas import CHECKS, LINES, SAID, Overrides, Said, scenario_problem
from apps.simulations.scripts import named_scripts
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

CHUNK = 5
MOST_SCENARIOS = 2000


def save_suite(deployment: Deployment, name: str) -> SimulationSuite:
    """The deployment's suite of this name, made where there is none."""
    suite: SimulationSuite
    suite, _ = SimulationSuite.objects.get_or_create(deployment=deployment, name=name.strip()[:80])
    return suite


def save_scenario(suite: SimulationSuite, name: str, **fields: Any) -> Scenario:
    """Write the scenario of this name. `lines` and `checks` are plain data of `schemas.Line` and `schemas.Check`.

    Raises `SilasError("invalid_scenario")` with the problems, and `"too_many_scenarios"` 409.
    """
    try:
        lines, checks = LINES.validate_python(fields.get("lines", [])), CHECKS.validate_python(fields.get("checks", []))
    except ValidationError as error:
        raise SilasError(ErrorCode.INVALID_SCENARIO, extra={"problems": _problems(error)}) from None
    player = Player(fields.get("player", Player.SCRIPT))
    by_model = player == Player.MODEL
    problem = scenario_problem(by_model=by_model, lines=lines, goal=fields.get("goal", ""), checks=checks)
    if problem:
        raise SilasError(ErrorCode.INVALID_SCENARIO, extra={"problems": [problem]})
    known = suite.scenarios.filter(name=name).exists()
    if not known and suite.scenarios.count() >= MOST_SCENARIOS:
        raise SilasError(ErrorCode.TOO_MANY_SCENARIOS)
    values = {
        **fields,
        "lines": LINES.dump_python(lines, mode="json", exclude_defaults=True),
        "checks": CHECKS.dump_python(checks, mode="json"),
        "player": player,
        "origin": Origin(fields.get("origin", Origin.WRITTEN)),
        "reviewer": Reviewer(fields.get("reviewer", Reviewer.NONE)),
    }
    row: Scenario
    row, _ = Scenario.objects.update_or_create(suite=suite, name=name[:160], defaults=values)
    return row


def load_suites(deployment: Deployment, folder: Path, *, key: str = "") -> list[SimulationSuite]:
    """Write the scenarios of the folder's files for this deployment into its suites, inside a scope. `key`: the public
    key in the files, where it is another one. Raises as `scripts.scripts`, and what `save_scenario` raises."""
    written = []
    for name, script in named_scripts(folder):
        if script.deployment != (key or deployment.public_key):
            continue
        suite = save_suite(deployment, name)
        for one in script.conversations:
            save_scenario(
                suite,
                one.name,
                persona=one.persona,
                goal=one.goal,
                secrets="\n".join(one.secrets),
                player=one.player,
                model=one.model,
                most_turns=one.most_turns,
                reviewer=one.reviewer,
                lines=[line.model_dump(mode="json", exclude_defaults=True) for line in one.turns],
                checks=[check.model_dump(mode="json") for check in one.checks],
                origin=Origin.ATTACKS if one.name.startswith("attack: ") else Origin.WRITTEN,
            )
        written.append(suite)
    return written


def _problems(error: ValidationError) -> list[str]:
    return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()][:20]


def run_simulation(
    deployment: Deployment,
    suite: SimulationSuite,
    *,
    overrides: Overrides | Mapping[str, object] | None = None,
    snapshot: str = "",
    budget_usd: Decimal | None = None,
    only: str = "",
    by: str = "system",
) -> SimulationRun:
    """Queue a run of the suite against the deployment, or against a draft of it. `only`: scenarios whose name has these
    words. `snapshot` names what is simulated for `queries.latest_run`. No scenario begins once `budget_usd` is spent.

    Raises `SilasError`: `invalid_overrides`, `simulation_empty` 409, `simulation_foreign_suite` 409.
    """
    if suite.deployment_id != deployment.pk:
        raise SilasError(ErrorCode.SIMULATION_FOREIGN_SUITE)
    try:
        draft = Overrides.model_validate(overrides or {})
    except ValidationError as error:
        raise SilasError(ErrorCode.INVALID_OVERRIDES, extra={"problems": _problems(error)}) from None
    scenarios = list(suite.scenarios.filter(name__icontains=only))
    if not scenarios:
        raise SilasError(ErrorCode.SIMULATION_EMPTY)
    run: SimulationRun = SimulationRun.objects.create(
        deployment=deployment,
        suite=suite,
        overrides=draft.model_dump(mode="json", exclude_none=True),
        snapshot=snapshot,
        budget_usd=budget_usd,
        compared_with=queries.latest_run(deployment, suite=suite),
        by=by,
    )
    SimulationResult.objects.bulk_create(
        [
            SimulationResult(run=run, scenario=scenario, name=scenario.name, place=place)
            for place, scenario in enumerate(scenarios)
        ]
    )
    _queue(run, scenarios=len(scenarios), by=by)
    return run


def resume(run_id: UUID, *, by: str) -> SimulationRun:
    """Go on with a run that was stopped or could not be carried out: what was left out is played, the other results
    stay. Raises `NotFound`, and 409 `simulation_empty` when nothing was left out or the run did not break off."""
    queries.run(run_id)
    run = _locked(run_id)
    left_out = run.results.filter(outcome=Outcome.LEFT_OUT)
    if run.status not in RESUMABLE or not left_out.exists():
        raise SilasError(ErrorCode.SIMULATION_EMPTY)
    again = left_out.update(outcome=Outcome.WAITING, finished_at=None)
    run.status, run.reason, run.finished_at, run.passed = RunStatus.QUEUED, "", None, None
    run.save(update_fields=["status", "reason", "finished_at", "passed"])
    _queue(run, scenarios=again, by=by)
    return run


def _queue(run: SimulationRun, *, scenarios: int, by: str) -> None:
    bus.enqueue(Kind.SIMULATION_RUN, scope_id=run.pk)
    data = {"scenarios": scenarios, "draft": bool(run.overrides)}
    record(AuditEvent.SIMULATION_STARTED, actor=by, subject=f"deployment:{run.deployment_id}", data=data)


def begin(run_id: UUID) -> SimulationRun | None:
    """Take the queued run for the preparation of its copy. None when it was stopped or has begun, or while another run
    of the deployment goes on."""
    run = _locked(run_id)
    busy = SimulationRun.objects.filter(deployment_id=run.deployment_id, status=RunStatus.RUNNING).exclude(pk=run.pk)
    if run.status not in ACTIVE or busy.exists():
        return None
    if run.status == RunStatus.QUEUED:
        run.status, run.started_at = RunStatus.RUNNING, now()
        run.save(update_fields=["status", "started_at"])
    return run


def queue_chunks(run_id: UUID, lacks: list[str]) -> None:
    """The copy is there: enqueue its scenarios, a message for each chunk."""
    run = _locked(run_id)
    if run.status != RunStatus.RUNNING:
        return
    run.lacks = lacks
    run.save(update_fields=["lacks"])
    ids = list(run.results.filter(outcome=Outcome.WAITING).order_by("place").values_list("pk", flat=True))
    for start in range(0, len(ids), CHUNK):
        chunk = [str(one) for one in ids[start : start + CHUNK]]
        bus.enqueue(
            Kind.SIMULATION_CHUNK,
            scope_id=chunk[0],
            payload={"run": str(run.pk), "results": chunk},
        )


def next_scenario(result_id: UUID) -> Scenario | None:
    """The scenario of a result that is to be played now; None when it was played, its run has ended, or the budget is
    spent, which ends the run's remaining results as left out."""
    result = SimulationResult.objects.select_related("run", "scenario").filter(pk=result_id).first()
    if result is None or result.outcome != Outcome.WAITING or result.run.status != RunStatus.RUNNING:
        return None
    run = result.run
    if run.budget_usd is not None and queries.cost_of(run) >= run.budget_usd:
        SimulationResult.objects.filter(run=run, outcome=Outcome.WAITING).update(
            outcome=Outcome.LEFT_OUT, finished_at=now()
        )
        SimulationRun.objects.filter(pk=run.pk).update(reason="budget_spent")
        return None
    if result.scenario is None:
        record_result(result_id, failures=["the scenario was deleted"], outcome=Outcome.ERROR)
        return None
    return result.scenario


def record_result(
    result_id: UUID,
    *,
    failures: list[str],
    said: Iterable[Said] = (),
    session_id: UUID | None = None,
    cost_usd: Decimal = Decimal(0),
    player: str = "",
    ending: Ending | None = None,
    outcome: Outcome | None = None,
) -> bool:
    """Record what came of a scenario, once; returns whether this call did."""
    changed: int = SimulationResult.objects.filter(pk=result_id, outcome=Outcome.WAITING).update(
        outcome=outcome or (Outcome.FAILED if failures else Outcome.PASSED),
        failures=failures,
        conversation=SAID.dump_python(list(said), mode="json"),
        session_id=session_id,
        cost_usd=F("cost_usd") + cost_usd,
        player=player,
        ending=ending or "",
        finished_at=now(),
    )
    return changed == 1


def add_cost(result_id: UUID, cost_usd: Decimal) -> None:
    """Count what a scenario cost that broke off and may be played again."""
    SimulationResult.objects.filter(pk=result_id).update(cost_usd=F("cost_usd") + cost_usd)


def finish_if_played(run_id: UUID) -> None:
    """End the run when no result waits any more. It passed only when all scenarios were played and passed."""
    run = _locked(run_id)
    if run.status != RunStatus.RUNNING or run.results.filter(outcome=Outcome.WAITING).exists():
        return
    _end(run, RunStatus.FINISHED, reason=run.reason)


def stop(run_id: UUID, *, by: str) -> SimulationRun:
    """Stop a run; scenarios that are being played end as they are. Raises `NotFound`, 409 `simulation_ended`."""
    queries.run(run_id)
    run = _locked(run_id)
    if run.status not in ACTIVE:
        raise SilasError(ErrorCode.SIMULATION_ENDED)
    _end(run, RunStatus.STOPPED, reason="stopped", by=by)
    return run


def fail(run_id: UUID, *, reason: str) -> None:
    """The run cannot be carried out."""
    run = _locked(run_id)
    if run.status in ACTIVE:
        _end(run, RunStatus.FAILED, reason=reason[:80])


def _end(run: SimulationRun, status: RunStatus, *, reason: str = "", by: str = "system") -> None:
    moment = now()
    run.results.filter(outcome=Outcome.WAITING).update(outcome=Outcome.LEFT_OUT, finished_at=moment)
    counted = queries.counts(run)
    total = sum(counted.values())
    run.status, run.reason, run.finished_at = status, reason, moment
    run.passed = status == RunStatus.FINISHED and counted[Outcome.PASSED] == total
    run.save(update_fields=["status", "reason", "finished_at", "passed"])
    data = {"status": str(status), "passed": counted[Outcome.PASSED], "scenarios": total}
    record(AuditEvent.SIMULATION_ENDED, actor=by, subject=f"deployment:{run.deployment_id}", data=data)


def _locked(run_id: UUID) -> SimulationRun:
    run: SimulationRun = SimulationRun.objects.select_for_update(of=("self",), no_key=True).get(pk=run_id)
    return run
