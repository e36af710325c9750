"""Read releases. Inside a scope."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.releases.enums import ReleaseStatus, SimulationRule
from apps.releases.models import Release, ReleasePolicy
from kernel.errors import NotFound


def releases_of(deployment_id: UUID) -> QuerySet[Release]:
    """Newest first."""
    rows: QuerySet[Release] = Release.objects.filter(deployment_id=deployment_id)
    return rows.order_by("-number")


def release_by_number(deployment_id: UUID, number: int) -> Release:
    """Raises `NotFound`, also for a foreign deployment."""
    row = releases_of(deployment_id).filter(number=number).first()
    if row is None:
        raise NotFound()
    return row


def main_release(deployment_id: UUID) -> Release | None:
    """The live release with the largest share, of equals the older; None without a release."""
    live = releases_of(deployment_id).filter(status=ReleaseStatus.LIVE)
    return live.order_by("-share", "number").first()


def personas_of(deployment_id: UUID) -> list[str]:
    """The persona texts of all releases."""
    return list(releases_of(deployment_id).values_list("snapshot__served__persona", flat=True))


def simulation_rule() -> SimulationRule:
    """The rule of the scope's company."""
    row = ReleasePolicy.objects.first()
    return SimulationRule(row.simulations) if row else SimulationRule.OFF
