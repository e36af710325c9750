"""A run plays its scenarios in the isolated copy, judges them from outside, and ends with one result."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from apps.simulations import conversation, queries, runner, services
from apps.simulations.enums import Outcome, RunStatus
from apps.simulations.models import SimulationRun
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.simulations import HELLO, make_suite, results_of, simulated


async def test_run_passes_when_every_check_holds(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    run = await simulated(deployment, suite, snapshot="abc")
    assert run.status == RunStatus.FINISHED
    assert run.passed is True
    found = (await results_of(run))["hello"]
    assert found.outcome == Outcome.PASSED
    assert found.conversation[0]["visitor"] == "Hello"
    assert found.conversation[0]["bot"]
    latest = await in_scope(deployment.tenant_id, queries.latest_run, deployment, snapshot="abc")
    assert latest == run
    assert await in_scope(deployment.tenant_id, queries.latest_run, deployment, snapshot="other") is None


async def test_run_fails_when_one_check_does_not_hold(deployment: Any) -> None:
    wrong = {"lines": [{"say": "Hello"}], "checks": [{"kind": "says", "words": ["a word it does not say"]}]}
    suite = await in_thread(lambda: make_suite(deployment, good=HELLO, bad=wrong))
    run = await simulated(deployment, suite)
    assert run.passed is False
    found = await results_of(run)
    assert found["good"].outcome == Outcome.PASSED
    assert found["bad"].failures == ["does not say 'a word it does not say'"]


async def test_draft_is_simulated_and_the_deployment_stays(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    run = await simulated(deployment, suite, overrides={"persona": "Speak like a pirate.", "greeting": "Ahoy"})
    copy = await in_thread(_copy_of, deployment)
    assert copy.persona == "Speak like a pirate."
    assert copy.greeting == "Ahoy"
    await in_scope(deployment.tenant_id, deployment.refresh_from_db)
    assert deployment.persona == ""
    assert run.passed is True


def _copy_of(deployment: Any) -> Any:
    from apps.simulations.models import SimulationCopy
    from apps.tenants.models import Deployment

    with tenant_scope(deployment.tenant_id):
        copy = SimulationCopy.objects.get(deployment=deployment)
    with tenant_scope(copy.copy_tenant_id):
        return Deployment.objects.get(pk=copy.copy_deployment_id)


async def test_second_run_is_compared_with_the_first_in_the_same_copy(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    first = await simulated(deployment, suite)
    copy = await in_thread(_copy_of, deployment)
    second = await simulated(deployment, suite)
    assert second.compared_with_id == first.pk
    assert (await in_thread(_copy_of, deployment)).pk == copy.pk


async def test_chunk_that_is_delivered_again_plays_nothing_again(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    run = await simulated(deployment, suite)
    before = (await results_of(run))["hello"]
    again = await in_scope(deployment.tenant_id, services.next_scenario, before.pk)
    assert again is None
    assert not await in_scope(deployment.tenant_id, services.record_result, before.pk, failures=["late"])
    assert (await results_of(run))["hello"].failures == []


async def test_stopped_run_plays_nothing_more_and_has_not_passed(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    run = await in_scope(deployment.tenant_id, services.run_simulation, deployment, suite)
    await in_scope(deployment.tenant_id, services.stop, run.pk, by="user:x")
    await runner.serve_due(tenant_id=deployment.tenant_id)
    run = await in_scope(deployment.tenant_id, SimulationRun.objects.get, pk=run.pk)
    assert run.status == RunStatus.STOPPED
    assert run.passed is False
    assert (await results_of(run))["hello"].outcome == Outcome.LEFT_OUT
    with pytest.raises(SilasError) as refused:
        await in_scope(deployment.tenant_id, services.stop, run.pk, by="user:x")
    assert refused.value.code == "simulation_ended"
    assert await in_scope(deployment.tenant_id, queries.latest_run, deployment) is None


async def test_no_scenario_begins_once_the_budget_is_spent(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    run = await simulated(deployment, suite, budget_usd=Decimal(0))
    assert run.status == RunStatus.FINISHED
    assert run.reason == "budget_spent"
    assert run.passed is False
    assert (await results_of(run))["hello"].outcome == Outcome.LEFT_OUT


async def test_second_run_waits_for_the_first(deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    first = await in_scope(deployment.tenant_id, services.run_simulation, deployment, suite)
    second = await in_scope(deployment.tenant_id, services.run_simulation, deployment, suite)
    assert await in_scope(deployment.tenant_id, services.begin, first.pk) is not None
    assert await in_scope(deployment.tenant_id, services.begin, second.pk) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"lines": [{"say": "x", "rout": "direct"}]}, "invalid_scenario"),
        ({"lines": []}, "invalid_scenario"),
        ({"lines": [], "model": "builtin:grounded", "goal": "a refund"}, "invalid_scenario"),
        ({"lines": [{"say": "\0"}]}, "invalid_scenario"),
        ({"lines": [{"say": "x"}], "checks": [{"kind": "opinion"}]}, "invalid_scenario"),
    ],
)
def test_scenario_with_a_mistake_is_refused(deployment: Any, fields: Any, code: str) -> None:
    suite = make_suite(deployment)
    with tenant_scope(deployment.tenant_id), pytest.raises(SilasError) as refused:
        services.save_scenario(suite, "bad", **fields)
    assert refused.value.code == code


def test_draft_with_an_unknown_setting_is_refused(deployment: Any) -> None:
    suite = make_suite(deployment)
    with tenant_scope(deployment.tenant_id), pytest.raises(SilasError) as refused:
        services.run_simulation(deployment, suite, overrides={"allowed_origins": []})
    assert refused.value.code == "invalid_overrides"


def test_foreign_run_is_not_found(deployment: Any, other_tenant: Any) -> None:
    suite = make_suite(deployment)
    with tenant_scope(deployment.tenant_id):
        run = services.run_simulation(deployment, suite)
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        services.stop(run.pk, by="user:x")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        queries.run(run.pk)


async def test_a_simulated_message_is_leased_by_the_transaction_that_writes_it(
    deployment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Web processes look for messages of all companies; one that is not leased when they see it is theirs."""
    opened, written_here = conversation.turn.open_turn, []

    def open_turn(session_id: Any, *, consumer: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM silas_sessions_chronicleentry WHERE xmin = pg_current_xact_id()::xid")
            written_here.append(cursor.fetchone()[0])
        return opened(session_id, consumer=consumer)

    monkeypatch.setattr(conversation.turn, "open_turn", open_turn)
    run = await simulated(deployment, await in_thread(make_suite, deployment))
    assert run.passed is True
    assert written_here
    assert all(count >= 1 for count in written_here)
