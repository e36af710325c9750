"""Record on which websites a deployment's widget was last loaded. Written by the widget's frame, read by the install
page.

The website is taken from the Referer header; only origins that the deployment allows are kept. This is a hint for the
owner and proves nothing, so it is exact to the minute and is not audited.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.tenants.models import Deployment, Sighting
from apps.tenants.rules import as_origin
from kernel.clock import now
from kernel.tenancy import tenant_scope

_PRECISION = timedelta(minutes=1)


def record_ping(deployment: Deployment, referer: str) -> None:
    """Record a load of the widget, at most once a minute per origin. Opens its own scope. Ignores other origins."""
    scheme, _, rest = referer.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    origin = as_origin(f"{scheme}://{host}" if rest else "")
    # Anyone can send this header: without the check a stranger could fill the table with origins.
    if not origin or origin not in deployment.allowed_origins:
        return
    moment = now()
    with tenant_scope(deployment.tenant_id):
        row, is_new = Sighting.objects.get_or_create(deployment=deployment, origin=origin, defaults={"last_at": moment})
        if not is_new and row.last_at < moment - _PRECISION:
            Sighting.objects.filter(pk=row.pk).update(last_at=moment)


def last_pings(deployment: Deployment) -> dict[str, datetime]:
    """When the widget was last loaded from each origin. Inside a scope."""
    return dict(Sighting.objects.filter(deployment=deployment).values_list("origin", "last_at"))
