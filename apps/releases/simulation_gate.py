"""Where publishing asks whether a simulation passed. The simulations room registers its answer at start."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ImproperlyConfigured

from apps.releases.enums import SimulationOutcome
from apps.releases.schemas import Snapshot
from apps.tenants.models import Deployment

# Says how the newest simulation of exactly this snapshot ended.
Judge = Callable[[Deployment, Snapshot], SimulationOutcome]

_judges: list[Judge] = []


def register_judge(judge: Judge) -> None:
    """One for the process. Called inside the tenant's scope."""
    if _judges and _judges != [judge]:
        raise ImproperlyConfigured("E_RELEASES_JUDGE: simulations have a judge already")
    _judges[:] = [judge]


def outcome_of(deployment: Deployment, snapshot: Snapshot) -> SimulationOutcome:
    return _judges[0](deployment, snapshot) if _judges else SimulationOutcome.MISSING
