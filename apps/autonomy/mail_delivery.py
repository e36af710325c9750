"""Send the outbox's e-mails: about results of tasks, and about notices (`services.notice_emails`)."""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.utils.translation import gettext as _

from apps.autonomy.models import Outbox
from apps.autonomy.services import notice_emails
from apps.autonomy.services.notice_emails import Email, NoEmail
from apps.autonomy.webhook_delivery import NotSent
from apps.tenants.models import User
from kernel.language import in_language
from kernel.tenancy import in_scope


async def send_row(tenant_id: UUID, row: Outbox) -> tuple[UUID, ...]:
    """Send the row's e-mail; return the other rows that the same e-mail covers.

    Raises `NotSent`. Without a mail server nothing is sent: the notice in the console is the record.
    """
    if not settings.EMAIL_HOST:
        raise NotSent("no_mail_server", permanent=True)
    # A notice to all owners: each of them may want it at another time, so each gets a row.
    if row.notice_id is not None and row.user_id is None:
        await in_scope(tenant_id, notice_emails.split_among_owners, row)
        return ()
    email = await in_scope(tenant_id, notice_emails.email_for if row.notice_id else _result_email, row)
    if isinstance(email, NoEmail):
        raise NotSent(email.code, permanent=True, until=email.until)
    try:
        await asyncio.to_thread(send_mail, email.subject, email.text, None, [email.address])
    except Exception as error:  # noqa: BLE001 (a mail server refuses in many ways)
        raise NotSent(type(error).__name__) from None
    return email.others


def _result_email(row: Outbox) -> Email | NoEmail:
    """How many results a session has, never their text: mail is not the place for customers' words."""
    assert row.user is not None
    person = User.objects.filter(pk=row.user.pk, is_active=True, memberships__isnull=False).first()
    if person is None:
        return NoEmail("no_address")
    counts = row.body.get("counts", {})
    with in_language(person.language):
        text = _("{findings} findings, {proposals} proposals. Read them in the console.").format(
            findings=counts.get("findings", 0), proposals=counts.get("proposals", 0)
        )
        subject = _("Done: {task}").format(task=row.body["task"])
    return Email(person.email, " ".join(subject.split()), text)
