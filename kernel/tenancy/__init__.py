"""Whose rows may this code see? One tenant's, inside a scope, or none (architecture: no row without a tenant)."""

from kernel.tenancy.models import TenantModel
from kernel.tenancy.scope import (
    INSTALLATION,
    ScopeError,
    apart,
    current_tenant_id,
    gather_for_commit,
    in_batches,
    lookup_scope,
    over_each,
    over_rows,
    platform_scope,
    scoped,
    tenant_scope,
    tried,
)
from kernel.tenancy.threads import in_scope, in_scope_patiently, in_thread

__all__ = [
    "INSTALLATION",
    "ScopeError",
    "TenantModel",
    "apart",
    "current_tenant_id",
    "gather_for_commit",
    "in_batches",
    "in_scope",
    "in_scope_patiently",
    "in_thread",
    "lookup_scope",
    "over_each",
    "over_rows",
    "platform_scope",
    "scoped",
    "tenant_scope",
    "tried",
]
