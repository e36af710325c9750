"""Admin of tenants, members, deployments, keys and account e-mails, and the base classes for rows of a tenant."""

from apps.tenants.admin import deployments, emails, keys, people
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm

__all__ = ["TenantRowAdmin", "TenantRowForm", "deployments", "emails", "keys", "people"]
