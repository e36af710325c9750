"""How does a company get from nothing to a chatbot on its site?

An installation without a company has one door: an address with a code that only whoever holds its secret key can make.
It closes with the first company. What is chosen on a screen stands in the deployment at once; the row only says which
screens were seen, so that the next visit goes on where this one ended.
"""

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
from kernel.errors import SilasError
from kernel.tenancy import current_tenant_id, tenant_scope

STEPS = ("model", "knowledge", "sites", "ready")
_SALT = "silas.first_run"
_LOCK = 0x51_1A_5F_12
SUGGESTIONS = ("What can you help me with?",)


@dataclass(frozen=True)
class NewCompany:
    """What the first screen asks."""

    name: str
    email: str
    password: str
    person: str = ""
    timezone: str = "Europe/London"


def setup_code(secret_key: str) -> str:
    """The code of an installation's setup address: the same for one secret key, good until there is a company."""
    return salted_hmac(_SALT, "setup", secret=secret_key, algorithm="sha256").hexdigest()[:40]


def may_set_up(code: str, *, secret_key: str) -> bool:
    """Whether this address may still make the first company. Outside of any scope."""
    right = hmac.compare_digest(code.encode("utf-8", "replace"), setup_code(secret_key).encode())
    return right and not has_company()


def has_company() -> bool:
    return Tenant.objects.exists()


def create_first_company(company: NewCompany) -> User:
    """The first company with its owner and an empty deployment. Opens its own scope. Raises `SilasError` 409
    `already_set_up`, and what `create_tenant` raises: of two who send the form at once, the second is refused."""
    slug = slugify(company.name)[:50] or "company"
    with transaction.atomic():
        _wait_for_the_other()
        if has_company():
            raise SilasError("already_set_up", "This installation has a company already. Log in instead.", status=409)
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


def _wait_for_the_other() -> None:
    """Until this transaction ends, nobody else makes a first company."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def get_or_start(*, actor: str) -> FirstRun:
    """The scope's first run, begun if it was not: with the company's first deployment, or a new one. Safe to repeat."""
    found: FirstRun | None = FirstRun.objects.select_related("deployment", "tenant").first()
    if found is not None:
        return found
    locks.lock_owners()  # of two who begin at once, the second finds what the first made
    place = Deployment.objects.select_related("tenant").order_by("created_at").first() or _first_deployment(actor)
    row, is_new = FirstRun.objects.get_or_create(defaults={"deployment": place})
    if is_new:
        record(AuditEvent.FIRST_RUN_WENT_ON, actor=actor, subject=f"deployment:{place.pk}", data={"step": "begun"})
    run: FirstRun = row
    return run


def unfinished() -> FirstRun | None:
    """Where the scope's company stopped, if it has begun and not ended."""
    found: FirstRun | None = FirstRun.objects.filter(finished_at=None).first()
    return found


def complete_step(run: FirstRun, step: str, *, actor: str) -> None:
    """This screen was seen; the last one ends the first run."""
    row = FirstRun.objects.select_for_update(of=("self",), no_key=True).get(pk=run.pk)
    if step in row.done:
        return
    row.done = [each for each in STEPS if each in {*row.done, step}]
    row.finished_at = now() if step == STEPS[-1] else row.finished_at
    row.save(update_fields=["done", "finished_at"])
    record(AuditEvent.FIRST_RUN_WENT_ON, actor=actor, subject=f"deployment:{row.deployment_id}", data={"step": step})


def next_step(run: FirstRun) -> str:
    """The first screen that nobody has been through."""
    return next((step for step in STEPS if step not in run.done), STEPS[-1])


def new_public_key(title: str) -> str:
    """A key that tells whose it is and that nobody guesses by accident."""
    return f"{slugify(title)[:40] or 'chat'}-{secrets.token_hex(4)}"


def _first_deployment(actor: str) -> Deployment:
    tenant = Tenant.objects.get(pk=current_tenant_id())
    return create_deployment(
        "main",
        actor=actor,
        title=tenant.name[:80],
        public_key=new_public_key(tenant.name),
        greeting=f"Hello. Ask anything about {tenant.name[:120]}.",
        suggestions=list(SUGGESTIONS),
    )
