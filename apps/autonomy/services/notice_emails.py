"""Emails about notices: their text, and when they are sent.

Members choose in their alert settings (docs/alerts.md): never, or when a notice was unread for a number of minutes. One
email covers all due notices; a member gets at most one in ten minutes, and none in their quiet hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.approvals.cards.alerts import EMAIL_MINUTES
from apps.approvals.enums import AlertWay
from apps.approvals.models import AlertChoice
from apps.autonomy.enums import OutboxState
from apps.autonomy.models import Outbox
from apps.autonomy.services.notices import Line, line_for
from apps.autonomy.services.outbox import enqueue_rows, mark_sent
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.language import in_language

_MOST_LINES = 20


@dataclass(frozen=True)
class Email:
    address: str
    subject: str
    text: str
    others: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class NoEmail:
    """No email now: not before `until`, or without one never, because of `code`."""

    code: str
    until: datetime | None = None


def split_among_owners(row: Outbox) -> None:
    """Replace an email to all owners by one to each of them. Inside a scope."""
    owners = Membership.objects.filter(role=Role.OWNER, user__is_active=True).values_list("user_id", flat=True)
    enqueue_rows(
        [
            Outbox(
                channel=row.channel,
                user_id=owner_id,
                notice_id=row.notice_id,
                event=row.event,
                key=f"{row.key}:{owner_id}",
            )
            for owner_id in owners
        ]
    )


def email_for(row: Outbox) -> Email | NoEmail:
    """The email to the row's member about all due notices. Inside a scope, which records that it is being sent."""
    if row.user_id is None:
        return NoEmail("not_chosen")
    moment = now()
    rows = AlertChoice.objects.select_for_update(of=("self",), no_key=True).select_related("user", "tenant")
    choice = rows.filter(user_id=row.user_id, user__is_active=True).exclude(way=AlertWay.OFF).first()
    if choice is None or not Membership.objects.filter(user_id=row.user_id).exists():
        return NoEmail("not_chosen")
    if row.notice is None or row.notice.read_at is not None:
        return NoEmail("read")
    due_at = row.notice.created_at + timedelta(minutes=choice.minutes)
    if choice.mailed_at is not None:
        due_at = max(due_at, choice.mailed_at + timedelta(minutes=EMAIL_MINUTES))
    due_at = choice.quiet_until(max(due_at, moment)) or due_at
    if due_at > moment:
        return NoEmail("not_yet", until=due_at)
    choice.mailed_at = moment
    choice.save(update_fields=["mailed_at"])
    waiting = Outbox.objects.filter(
        user_id=row.user_id,
        state=OutboxState.WAITING,
        notice__read_at=None,
        notice__created_at__lte=moment - timedelta(minutes=choice.minutes),
    ).exclude(pk=row.pk)
    included = [row, *waiting.select_related("notice")[: _MOST_LINES - 1]]
    with in_language(choice.user.language):
        lines = [line_for(item.notice) for item in included if item.notice is not None]
        subject = (
            _summary(lines[0])
            if len(lines) == 1
            else ngettext("{count} notice for you", "{count} notices for you", len(lines)).format(count=len(lines))
        )
        text = "\n\n".join(f"{_summary(line)}\n{line.button}: {_link(line.path)}" for line in lines)
        footer = _("All notices: {link}").format(link=_link(reverse("console-notices")))
    others = tuple(item.pk for item in included[1:])
    return Email(choice.user.email, " ".join(subject.split()), f"{text}\n\n{footer}\n", others)


def mark_included_sent(others: tuple[UUID, ...]) -> None:
    """Mark the rows that the email included as sent. Inside a scope."""
    for row in Outbox.objects.filter(pk__in=others):
        mark_sent(row)


def _summary(line: Line) -> str:
    return f"{line.title}: {line.ended}" if line.ended else line.title


def _link(path: str) -> str:
    return f"{settings.PASSKEY_ORIGIN}{path}" if settings.PASSKEY_ORIGIN else _("the console, {path}").format(path=path)
