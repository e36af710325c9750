"""On which of its sites was a deployment's widget loaded, and when last? Written by the widget's frame, read by the
install page.

The frame knows its site by the Referer that browsers send; only origins that the deployment allows are kept. It is a
sign for the owner and proves nothing, so that a minute is exact enough and no audit entry is made.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.tenants.models import Deployment, Sighting
from apps.tenants.rules import as_origin
from kernel.clock import now
from kernel.tenancy import tenant_scope

_EXACT = timedelta(minutes=1)


def record_ping(deployment: Deployment, referer: str) -> None:
    """Opens its own scope. Nothing is written for other origins, or twice in a minute."""
    origin = as_origin(_origin_of(referer))
    if not origin or origin not in deployment.allowed_origins:
        return
    moment = now()
    with tenant_scope(deployment.tenant_id):
        row, is_new = Sighting.objects.get_or_create(deployment=deployment, origin=origin, defaults={"last_at": moment})
        if not is_new and row.last_at < moment - _EXACT:
            Sighting.objects.filter(pk=row.pk).update(last_at=moment)


def last_pings(deployment: Deployment) -> dict[str, datetime]:
    """When each origin was seen last. Inside a scope."""
    return dict(Sighting.objects.filter(deployment=deployment).values_list("origin", "last_at"))


def _origin_of(referer: str) -> str:
    scheme, _, rest = referer.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    return f"{scheme}://{host}" if rest else ""
