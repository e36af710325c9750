"""Certify the database's present content: once, when an installation gets its installation key (ADR 99), and after a
restore. Sealed versions are pinned outside the database (apps.tenants.policy_pins).

Afterwards every change certifies itself, and rows that were only written are not trusted. So this runs by hand, or at
the one start that pins the installation key for the first time, and never again by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.access.levels import sealed_levels
from apps.approvals.keys.services import certify_keys
from apps.approvals.queries import policies_to_certify, revocations_to_certify
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.queries import sealed_gates
from apps.skills.integrity import sealed_skills
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.queries import all_tenants
from apps.toolservers.integrity import sealed_tools
from apps.work.queries import sealed_goals
from kernel.tenancy import tenant_scope


@dataclass(frozen=True)
class Certified:
    """Number of rows certified in one tenant, by kind; kinds with nothing to certify are left out."""

    tenant: str
    counts: dict[str, int]


class _RollBack(Exception):
    """Rolls a dry run back."""


def certify_all(*, actor: str, keep: bool = True, slug: str = "") -> Iterator[Certified]:
    """Certify every tenant's rows, or those of the one with this slug, one transaction for each tenant. Without `keep`
    it only counts and writes nothing.

    Raises `SilasError("signing_key_missing")`.
    """
    for tenant in all_tenants(slug):
        counts: dict[str, int] = {}
        try:
            with tenant_scope(tenant):
                counts = {kind: number for kind, number in _certify().items() if number}
                if not keep:
                    raise _RollBack
                if counts:
                    record(AuditEvent.CERTIFIED, actor=actor, subject=f"tenant:{tenant.pk}", data=counts)
        except _RollBack:
            pass
        yield Certified(tenant.slug, counts)


def _certify() -> dict[str, int]:
    return {
        "approver_keys": certify_keys(),
        "gates": policy_seals.certify(PolicyKind.GATES, sealed_gates()),
        "levels": policy_seals.certify(PolicyKind.LEVELS, sealed_levels()),
        "approval_policies": policy_seals.certify(PolicyKind.APPROVALS, policies_to_certify()),
        "goals": policy_seals.certify(PolicyKind.GOALS, sealed_goals()),
        "revocations": policy_seals.certify(PolicyKind.REVOCATIONS, revocations_to_certify()),
        "skills": policy_seals.certify(PolicyKind.SKILLS, sealed_skills()),
        "tools": policy_seals.certify(PolicyKind.TOOLS, sealed_tools()),
    }
