"""Check a company for suggestions every quarter of an hour, for as long as there can be something to suggest."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps.autonomy.models import AutonomySettings
from apps.autonomy.queries import autonomy_settings
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.bus.queries import is_waiting
from apps.suggestions.models import Outcome
from apps.tenants.models import Deployment
from kernel.clock import now
from kernel.tenancy import before_commit, current_tenant_id

INTERVAL = timedelta(minutes=15)


def schedule_suggestions() -> None:
    """Check the company from now on; `next_check` says until when."""
    before_commit(_schedule_check, None)


def _schedule_check(_: list[None]) -> None:
    tenant_id = current_tenant_id()
    if not is_waiting(Kind.SUGGESTION_LOOK, tenant_id):
        bus.schedule(Kind.SUGGESTION_LOOK, scope_id=tenant_id, due_at=now() + INTERVAL)


def deployments_to_check() -> list[UUID]:
    """All enabled deployments where automations are on; otherwise those with decisions in the last day."""
    rows = Deployment.objects.filter(enabled=True)
    if not autonomy_settings().enabled:
        rows = rows.filter(pk__in=_recent_outcomes().values("deployment"))
    return list(rows.values_list("pk", flat=True))


def next_check() -> datetime | None:
    """When to check the company again; None where automations are off and there are no recent decisions.

    A decision that commits at this moment is evaluated with the next one.
    """
    # Locked, so that enabling automations at this moment is not missed.
    settings = AutonomySettings.objects.select_for_update(no_key=True).first()
    check_again = (settings is not None and settings.enabled) or _recent_outcomes().exists()
    return now() + INTERVAL if check_again else None


def _recent_outcomes() -> QuerySet[Outcome]:
    recent: QuerySet[Outcome] = Outcome.objects.filter(decided_at__gt=now() - timedelta(days=1))
    return recent
