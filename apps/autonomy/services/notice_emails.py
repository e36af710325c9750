"""Letters about notices: what they say, and when they leave. Members choose that with their alerts (docs/alerts.md):
not at all, or after so many minutes in which they have not read the notice; at most one in ten minutes, about all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.urls import reverse

from apps.approvals.enums import AlertWay
from apps.approvals.models import AlertChoice
from apps.approvals.services.alerts import LETTER_MINUTES
from apps.autonomy.enums import OutboxState
from apps.autonomy.models import Outbox
from apps.autonomy.services.notices import Line, line_for
from apps.autonomy.services.outbox import enqueue_rows, mark_sent
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.clock import now

_MOST_LINES = 20


@dataclass(frozen=True)
class Email:
    address: str
    subject: str
    text: str
    others: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class NoEmail:
    """`until`: not before that moment; without one never, because of `code`."""

    code: str
    until: datetime | None = None


def split_among_owners(row: Outbox) -> None:
    """A letter to the owners becomes one to each of them; inside a scope."""
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
    """The letter to the row's member, about all that is due to them; inside a scope, which notes that it leaves."""
    moment = now()
    rows = AlertChoice.objects.select_for_update(of=("self",), no_key=True).select_related("user")
    choice = rows.filter(user_id=row.user_id, user__is_active=True).exclude(way=AlertWay.OFF).first()
    if choice is None or not Membership.objects.filter(user_id=row.user_id).exists():
        return NoEmail("not_chosen")
    if row.notice is None or row.notice.read_at is not None:
        return NoEmail("read")
    due_at = row.notice.created_at + timedelta(minutes=choice.minutes)
    if choice.mailed_at is not None:
        due_at = max(due_at, choice.mailed_at + timedelta(minutes=LETTER_MINUTES))
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
    together = [row, *waiting.select_related("notice")[: _MOST_LINES - 1]]
    lines = [line_for(each.notice) for each in together if each.notice is not None]
    subject = _said(lines[0]) if len(lines) == 1 else f"{len(lines)} notices for you"
    text = "\n\n".join(f"{_said(line)}\n{line.button}: {_place(line.path)}" for line in lines)
    footer = f"All notices: {_place(reverse('console-notices'))}"
    others = tuple(each.pk for each in together[1:])
    return Email(choice.user.email, " ".join(subject.split()), f"{text}\n\n{footer}\n", others)


def mark_included_sent(others: tuple[UUID, ...]) -> None:
    """What the letter told as well is sent with it; inside a scope."""
    for row in Outbox.objects.filter(pk__in=others):
        mark_sent(row)


def _said(line: Line) -> str:
    return f"{line.title}: {line.ended}" if line.ended else line.title


def _place(path: str) -> str:
    return f"{settings.PASSKEY_ORIGIN}{path}" if settings.PASSKEY_ORIGIN else f"the console, {path}"
