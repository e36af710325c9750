"""Count the rows forged by a superuser without the signing key that are trusted.

Everything is written with triggers asleep, as the database's own superuser. What counts as believed is what the product
then does: a token that verifies, a harmless message that a weakened gate lets through, a tool that a visitor's level
opens, a skill that is found, a log that verifies. The process that looks has only the pinned public key, as a worker.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attack.report import Figure

_TAMPERED_GATES = (
    "UPDATE gates_gateversion SET content = jsonb_set(content, '{config,pattern}', '\".\"') WHERE gate_id = %s",
    "UPDATE gates_gate SET active = NULL, status = 'retired' WHERE id = %s",
    "DELETE FROM gates_gate WHERE id = %s",
    "UPDATE gates_gate SET active = 1 WHERE id = %s",
)
_TAMPERED_LEVELS = (
    "UPDATE silas_sessions_accesslevel SET tools = '[\"pay\"]' WHERE id = %s",
    "UPDATE silas_sessions_accesslevel SET requires = '[\"easy\"]', tools = '[\"pay\"]' WHERE id = %s",
    "UPDATE silas_sessions_accesslevel SET name = 'public', requires = '[]', tools = '[\"pay\"]' WHERE id = %s",
)


def run(short: bool) -> list[Figure]:
    from django.conf import settings

    from kernel.trust import root_of

    settings.SILAS_ROOT_KEYS = (root_of(settings.SILAS_SIGNING_KEY),)
    settings.BUNDLED_SKILLS_CHECKED = True
    rounds = 1 if short else 5
    tried, believed = Counter[str](), Counter[str]()
    for attack in (_approvals, _gates, _levels, _skills, _history):
        for _ in range(rounds):
            for kind, was_believed in attack():
                tried[kind] += 1
                believed[kind] += was_believed
    return [
        Figure(f"forged as superuser: {kind}", tried[kind], f"{believed[kind]} believed", "0", not believed[kind])
        for kind in tried
    ]


@contextmanager
def _as_worker() -> Iterator[None]:
    """The pinned public key is all that is left."""
    from django.conf import settings

    key, settings.SILAS_SIGNING_KEY = settings.SILAS_SIGNING_KEY, ""
    try:
        yield
    finally:
        settings.SILAS_SIGNING_KEY = key


def _sql(statement: str, *values: object) -> None:
    from tests.factories.audit import tampering

    with tampering(os.environ["SILAS_TEST_SUPERUSER_DSN"]) as cursor:
        cursor.execute(statement, values)


def _approvals() -> Iterator[tuple[str, bool]]:
    from apps.approvals.enums import ApprovalScope, Reason
    from apps.approvals.models import ApproverKey
    from kernel.tenancy import tenant_scope
    from tests.approvals.test_certified_keys import _forged_key, _forged_token
    from tests.approvals.test_tokens import verify
    from tests.factories.approvals import make_plan, make_token
    from tests.factories.tenants import make_member, make_tenant

    dsn = os.environ["SILAS_TEST_SUPERUSER_DSN"]
    for kind, scope, copied in (
        ("approver key and approval", ApprovalScope.FULL_PLAN, False),
        ("certificate of another key", ApprovalScope.FULL_PLAN, True),
        ("standing approval", ApprovalScope.STANDING, False),
    ):
        tenant = make_tenant()
        owner = make_member(tenant, "owner")
        plan = {"type": "goal", "failure_context": "Fix $failed_checks"} if scope == ApprovalScope.STANDING else {}
        token = make_token(tenant, owner, make_plan(**plan), scope=scope)
        with tenant_scope(tenant):
            certificate = ApproverKey.objects.get(user=owner).certificate if copied else ""
        private, wanted = _forged_key(dsn, tenant, owner, certificate=certificate), make_plan(**plan)
        forged = _forged_token(dsn, token, private, wanted)
        with _as_worker():
            # A standing approval without a child is refused later than its signature is looked at.
            yield kind, verify(tenant, forged, wanted) is not Reason.INVALID_SIGNATURE


def _gates() -> Iterator[tuple[str, bool]]:
    from apps.gates.queries import active_gates
    from apps.gates.schemas import GateSpec
    from apps.gates.services import check_gates, save_gate
    from kernel.tenancy import tenant_scope
    from tests.factories.tenants import make_deployment, make_tenant

    for statement in _TAMPERED_GATES:
        tenant = make_tenant()
        deployment = make_deployment(tenant)
        with tenant_scope(tenant):
            for pattern in (".", "never said"):
                spec = GateSpec(name="guard", on="every_user_message", type="regex", config={"pattern": pattern})
                gate = save_gate(spec, deployment_id=deployment.pk)
        _sql(statement, gate.pk)
        with _as_worker(), tenant_scope(tenant):
            gates = active_gates(deployment.pk).value
        report = check_gates(gates, "every_user_message", {"message": "hello", "recent": [], "verified_gates": {}})
        yield ("gate removed" if "DELETE" in statement or "NULL" in statement else "gate in force"), not report.blocked


def _levels() -> Iterator[tuple[str, bool]]:
    from apps.access.models import AccessLevel
    from apps.sessions import policy
    from kernel.tenancy import tenant_scope
    from tests.factories.tenants import make_deployment, make_tenant

    for statement in _TAMPERED_LEVELS:
        tenant = make_tenant()
        deployment = make_deployment(tenant)
        with tenant_scope(tenant):
            row = AccessLevel.objects.create(deployment=deployment, name="known", order=1, requires=["code"])
        _sql(statement, row.pk)
        with _as_worker(), tenant_scope(tenant):
            levels = policy.load(deployment).levels
        yield "access level", any("pay" in level.tools for level in levels.values())


def _skills() -> Iterator[tuple[str, bool]]:
    from apps.skills import queries
    from kernel.tenancy import tenant_scope
    from tests.factories.skills import make_folder, propose
    from tests.factories.tenants import make_tenant

    for source in ("folder", "bundled"):
        with tempfile.TemporaryDirectory() as place:
            tenant = make_tenant()
            version = propose(tenant, make_folder(Path(place)))
        _sql(
            "UPDATE skills_skillversion SET status = 'active', source = %s, activated_at = now() WHERE id = %s",
            source,
            version.pk,
        )
        with _as_worker(), tenant_scope(tenant):
            yield (
                f"{'bundled' if source == 'bundled' else 'active'} skill",
                bool(queries.versions_in_use([version.name])),
            )


def _history() -> Iterator[tuple[str, bool]]:
    from django.core.management import call_command

    from tests.audit.test_cut_history import checkpoint, cut, rewrite
    from tests.factories.audit import make_entries
    from tests.factories.tenants import make_tenant

    dsn = os.environ["SILAS_TEST_SUPERUSER_DSN"]
    attacks: tuple[Callable[[Any], None], ...] = (
        lambda tenant: cut(dsn, tenant, 3),
        lambda tenant: rewrite(dsn, tenant),
    )
    for attack in attacks:
        tenant = make_tenant()
        make_entries(tenant, 6)
        checkpoint(tenant)
        attack(tenant)
        try:
            call_command("audit_verify", "--tenant", tenant.slug, stdout=io.StringIO(), stderr=io.StringIO())
        except SystemExit:
            yield "cut or rewritten log", False
        else:
            yield "cut or rewritten log", True
