"""Register the bus's own jobs and those of the rooms below it: account mail, retention and audit checkpoints."""

from __future__ import annotations

from datetime import timedelta

from django.db.models.signals import post_save
from django.dispatch import receiver

from apps.audit.checkpoints import write_checkpoints
from apps.bus import retention
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.bus.services import enqueue
from apps.tenants import emails, idempotency
from apps.tenants.models import Letter, Tenant
from apps.tenants.signals import email_enqueued
from kernel.clock import now
from kernel.tenancy import INSTALLATION, in_thread, tenant_scope

CHECKPOINTS_EVERY = timedelta(minutes=1)


@receiver(post_save, sender=Tenant)
def _schedule_retention(instance: Tenant, created: bool, **_: object) -> None:
    if created:
        with tenant_scope(instance):
            retention.schedule_first()


@email_enqueued.connect
def _enqueue_account_mail(letter: Letter) -> None:
    """An invitation belongs to its company, every other mail about accounts to none."""
    with tenant_scope(letter.company_id or INSTALLATION):
        enqueue(Kind.ACCOUNT_MAIL, scope_id=letter.pk)


async def _sign_checkpoints(delivery: Delivery) -> None:
    await in_thread(write_checkpoints)
    await delivery.reschedule(lambda: now() + CHECKPOINTS_EVERY)


retention.register(retention.delete_closed_messages)
retention.register(emails.delete_old, installation=True)
retention.register(idempotency.delete_old)
register_job(Kind.RETENTION, retention.run, recurring=True)
register_job(Kind.CHECKPOINT, _sign_checkpoints, recurring=True)
register_job(Kind.ACCOUNT_MAIL, emails.send)
on_dead_letter(emails.mark_failed, Kind.ACCOUNT_MAIL)
