"""Set up an installation's first company and its first chatbot.

An installation without a company accepts one setup URL, with a code that is derived from its secret key; it is closed
by the first company. What is chosen on a screen is written to the deployment at once; the `FirstRun` row only records
which screens were completed, so that the next visit continues there."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from django.db import connection, transaction
from django.utils.crypto import salted_hmac
from django.utils.text import slugify

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import locks
from apps.tenants.models import Deployment, FirstRun, Tenant, User
from apps.tenants.services import create_deployment, create_tenant
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, gettext_lazy
from kernel.tenancy import current_tenant_id, tenant_scope

STEPS = ("model", "knowledge", "sites", "ready")
_SALT = "silas.first_run"
_LOCK = 0x51_1A_5F_12
SUGGESTIONS = (gettext_lazy("What can you help me with?"),)


@dataclass(frozen=True)
class NewCompany:
    """Input of the first screen."""

    name: str
    email: str
    password: str
    person: str = ""
    timezone: str = "Europe/London"


def setup_code(secret_key: str) -> str:
    """The code of the installation's setup URL: derived from the secret key, valid until there is a company."""
    return salted_hmac(_SALT, "setup", secret=secret_key, algorithm="sha256").hexdigest()[:40]


def may_set_up(code: str, *, secret_key: str) -> bool:
    """Whether this code may create the first company. Outside any scope."""
    # In constant time, so that the code cannot be guessed character by character.
    matches = hmac.compare_digest(code.encode("utf-8", "replace"), setup_code(secret_key).encode())
    return matches and not has_company()


def has_company() -> bool:
    return Tenant.objects.exists()


def create_first_company(company: NewCompany) -> User:
    """Create the first company with its owner and an empty deployment; returns the owner. Opens its own scope.

    Raises `SilasError("already_set_up")` 409, and as `create_tenant`.
    """
    slug = slugify(company.name)[:50] or "company"
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Held until the transaction ends: of two requests at once, the second finds the first one's company.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if has_company():
            raise SilasError(ErrorCode.ALREADY_SET_UP)
        owner = create_tenant(
            slug,
            name=company.name,
            owner_email=company.email,
            owner_name=company.person,
            owner_password=company.password,
            timezone=company.timezone,
        )
        user: User = owner.membership.user
        with tenant_scope(owner.membership.tenant_id):
            get_or_start(actor=user.actor)
    return user


def get_or_start(*, actor: str) -> FirstRun:
    """The scope's first run; starts it with the company's first deployment, or a new one, if needed. Idempotent."""
    existing: FirstRun | None = FirstRun.objects.select_related("deployment", "tenant").first()
    if existing is not None:
        return existing
    locks.lock_owners()  # of two requests at once, the second one finds the first one's row
    deployment = Deployment.objects.select_related("tenant").order_by("created_at").first() or _create_first_deployment(
        actor
    )
    row, is_new = FirstRun.objects.get_or_create(defaults={"deployment": deployment})
    if is_new:
        record(AuditEvent.FIRST_RUN_WENT_ON, actor=actor, subject=f"deployment:{deployment.pk}", data={"step": "begun"})
    run: FirstRun = row
    return run


def unfinished() -> FirstRun | None:
    """The scope's first run if it was started and not finished."""
    run: FirstRun | None = FirstRun.objects.filter(finished_at=None).first()
    return run


def complete_step(run: FirstRun, step: str, *, actor: str) -> None:
    """Mark a screen as completed; the last one finishes the first run."""
    # Under its lock: of two windows the second adds to what the first has stored.
    row = FirstRun.objects.select_for_update(of=("self",), no_key=True).get(pk=run.pk)
    if step in row.done:
        return
    row.done = [name for name in STEPS if name in {*row.done, step}]
    row.finished_at = now() if step == STEPS[-1] else row.finished_at
    row.save(update_fields=["done", "finished_at"])
    record(AuditEvent.FIRST_RUN_WENT_ON, actor=actor, subject=f"deployment:{row.deployment_id}", data={"step": step})


def next_step(run: FirstRun) -> str:
    """The first screen that is not completed."""
    return next((step for step in STEPS if step not in run.done), STEPS[-1])


def new_public_key(title: str) -> str:
    """A public key made of the title and random characters."""
    return f"{slugify(title)[:40] or 'chat'}-{secrets.token_hex(4)}"


def _create_first_deployment(actor: str) -> Deployment:
    tenant = Tenant.objects.get(pk=current_tenant_id())
    return create_deployment(
        "main",
        actor=actor,
        title=tenant.name[:80],
        public_key=new_public_key(tenant.name),
        greeting=gettext("Hello! Ask me anything about {company}.").format(company=tenant.name[:120]),
        suggestions=[str(text) for text in SUGGESTIONS],
    )
