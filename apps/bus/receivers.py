"""Work of this room and of those below the bus: mail about accounts, clean-up, and checkpoints of the audit log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from apps.audit.checkpoints import write_checkpoints
from apps.bus import retention, upkeep
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.registry import register_later, when_dead
from apps.bus.services import owe
from apps.tenants import emails
from apps.tenants.models import Letter, Tenant
from apps.tenants.signals import email_enqueued
from kernel.clock import now
from kernel.tenancy import INSTALLATION, in_thread, tenant_scope

CHECKPOINTS_EVERY = timedelta(minutes=1)


@receiver(post_save, sender=Tenant)
def _tenant_began(instance: Tenant, created: bool, **_: Any) -> None:
    if created:
        with tenant_scope(instance):
            retention.begin()


@email_enqueued.connect
def _owe_account_mail(letter: Letter) -> None:
    """An invitation is its company's; all other letters about accounts belong to no company."""
    with tenant_scope(letter.company_id or INSTALLATION):
        owe(Kind.ACCOUNT_MAIL, scope_id=letter.pk)


async def _sign_checkpoints(delivery: Delivery) -> None:
    await in_thread(write_checkpoints)
    await delivery.repeat(_next_checkpoint)


def _next_checkpoint() -> datetime:
    return now() + CHECKPOINTS_EVERY


retention.register(upkeep.clear_batch)
retention.register(emails.delete_old, installation=True)
register_later(Kind.RETENTION, retention.clear, standing=True)
register_later(Kind.CHECKPOINT, _sign_checkpoints, standing=True)
register_later(Kind.ACCOUNT_MAIL, emails.send)
when_dead(emails.mark_failed, Kind.ACCOUNT_MAIL)
