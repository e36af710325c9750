"""Tenant scopes: code sees the rows of one tenant inside a scope, and none outside (architecture: no row without a
tenant).
"""

from kernel.tenancy.models import TenantModel
from kernel.tenancy.reads import ModelRows, Read, built_once, read_together
from kernel.tenancy.replica import read_from_replica
from kernel.tenancy.scope import (
    COMPANY_CLOSED,
    INSTALLATION,
    ScopeError,
    before_commit,
    current_tenant_id,
    for_each_row,
    for_each_tenant,
    in_tenant_scope,
    lookup_scope,
    platform_scope,
    refuse_closed_companies,
    run_isolated,
    savepoint,
    tenant_scope,
)
from kernel.tenancy.threads import in_scope, in_thread, with_retry

__all__ = [
    "COMPANY_CLOSED",
    "INSTALLATION",
    "ModelRows",
    "Read",
    "ScopeError",
    "TenantModel",
    "before_commit",
    "built_once",
    "current_tenant_id",
    "for_each_row",
    "for_each_tenant",
    "in_scope",
    "in_tenant_scope",
    "in_thread",
    "lookup_scope",
    "platform_scope",
    "read_from_replica",
    "read_together",
    "refuse_closed_companies",
    "run_isolated",
    "savepoint",
    "tenant_scope",
    "with_retry",
]
