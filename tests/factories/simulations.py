"""Suites and runs of simulations for tests."""

from __future__ import annotations

from typing import Any

from apps.simulations import runner, services
from apps.simulations.models import SimulationRun, SimulationSuite
from apps.tenants.models import Deployment
from kernel.tenancy import in_scope, tenant_scope

HELLO = {"lines": [{"say": "Hello"}], "checks": [{"kind": "answered"}]}


def make_suite(deployment: Deployment, name: str = "Everyday", **scenarios: Any) -> SimulationSuite:
    """A suite with these scenarios, by name; one that says hello without any."""
    with tenant_scope(deployment.tenant_id):
        suite = services.save_suite(deployment, name)
        for title, fields in (scenarios or {"hello": HELLO}).items():
            services.save_scenario(suite, title, **fields)
    return suite


async def simulated(deployment: Deployment, suite: SimulationSuite, **wish: Any) -> SimulationRun:
    """A run of the suite, played to its end in this process."""
    run = await in_scope(deployment.tenant_id, services.run_simulation, deployment, suite, **wish)
    await runner.serve_due(tenant_id=deployment.tenant_id)
    return await in_scope(deployment.tenant_id, SimulationRun.objects.get, pk=run.pk)


async def results_of(run: SimulationRun) -> dict[str, Any]:
    rows = await in_scope(run.tenant_id, lambda: list(run.results.all()))
    return {row.name: row for row in rows}
