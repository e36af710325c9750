"""Find deployments for the widget and the demo pages. Unknown, malformed and disabled keys look the same."""

from __future__ import annotations

from apps.tenants.models import Deployment, Tenant
from apps.tenants.queries import deployment_by_key
from apps.widgets import rules
from kernel.tenancy import tenant_scope


def open_deployment(key: str) -> Deployment | None:
    """The enabled deployment with this public key, or None."""
    deployment = deployment_with_key(key)
    return deployment if deployment is not None and deployment.enabled else None


def deployment_with_key(key: str) -> Deployment | None:
    """The deployment with this public key, also a disabled one, or None."""
    return deployment_by_key(key) if rules.is_key(key) else None


def demo_tenants() -> list[Tenant]:
    """All tenants, for the links on the landing page. Demo mode only: a real platform names no customer in public."""
    return list(Tenant.objects.all())


def demo_deployment(tenant_slug: str) -> Deployment | None:
    """The first enabled deployment of the tenant, for its demo page."""
    tenant = Tenant.objects.filter(slug=tenant_slug).first()
    if tenant is None:
        return None
    with tenant_scope(tenant):
        deployment: Deployment | None = (
            Deployment.objects.select_related("tenant").filter(enabled=True).order_by("created_at").first()
        )
        return deployment
