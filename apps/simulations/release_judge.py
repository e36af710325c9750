"""Simulate what a release would serve, and say how the newest simulation of it ended. Inside a tenant scope."""

from __future__ import annotations

from apps.releases.enums import SimulationOutcome
from apps.releases.schemas import Snapshot
from apps.simulations.queries import latest_run
from apps.simulations.schemas import Overrides, Personality
from apps.tenants.models import Deployment


def judge(deployment: Deployment, snapshot: Snapshot) -> SimulationOutcome:
    run = latest_run(deployment, snapshot=snapshot.sha256)
    if run is None:
        return SimulationOutcome.MISSING
    return SimulationOutcome.PASSED if run.passed else SimulationOutcome.FAILED


def overrides_of(snapshot: Snapshot) -> Overrides:
    """The draft that serves exactly what the snapshot serves."""
    served = snapshot.served
    return Overrides(
        persona=served.persona,
        greeting=served.greeting,
        suggestions=list(served.suggestions),
        languages=list(served.languages),
        model_names=dict(served.models),
        personality=Personality.model_validate({"preset": served.preset, "axes": served.axes}),
    )
