"""Tenants, people, deployments and keys in the administration, and what every row of a tenant has in common there."""

from apps.tenants.admin import deployments, emails, keys, people
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm

__all__ = ["TenantRowAdmin", "TenantRowForm", "deployments", "emails", "keys", "people"]
