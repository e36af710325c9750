"""When does anybody look around? Every quarter of an hour, of each company that has something to look at; the looking
itself is owed to web processes. Safe to run twice: a quarter is owed once. Imported when Django is ready."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task

from apps.autonomy import queries
from apps.autonomy.models import Outcome
from apps.autonomy.services import owing
from apps.tenants.models import Deployment
from apps.tenants.queries import over_all
from kernel.clock import now
from kernel.tenancy import scoped

SECONDS = 900


@shared_task(name="autonomy.look_around")
def look_around() -> None:
    over_all(scoped(owe_looks))


def owe_looks() -> None:
    """One a deployment and quarter, where unattended work is on or somebody has decided something lately."""
    quarter = int(now().timestamp()) // SECONDS
    recent = set(
        Outcome.objects.filter(decided_at__gt=now() - timedelta(days=1))
        .values_list("deployment_id", flat=True)
        .distinct()
    )
    everywhere = queries.settings_of().enabled
    for deployment_id in Deployment.objects.filter(enabled=True).values_list("pk", flat=True):
        if everywhere or deployment_id in recent:
            owing.owe(owing.LOOK, deployment_id, message_id=f"{owing.LOOK}:{deployment_id}:{quarter}")
