"""Notices: what an open console may ring for and show on the desktop, where its member wants that.

A notice says what kind of thing happened and where, never its content. It is published from any process; the member's
own consoles look at their choice and their quiet hours, and at whom the notice concerns where only a query can tell.
What is not shown is listed all the same: in the inbox, in Review and among the notifications.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import TextChoices
from django.urls import reverse

from apps.approvals.cards.lifecycle import eligible_approvers
from apps.approvals.queries import get_card
from apps.console.members import ANSWERING_ROLES, group_of, group_of_member
from apps.inbox.sla_tracking import responsible_for
from apps.sessions.queries import session_by_id
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import role_of
from kernel.live import poke_on_commit
from kernel.tenancy import current_tenant_id


class NoticeKind(TextChoices):
    """What happened: the visitor wrote in a conversation that the member answers or is assigned to; a conversation
    waits for a person; a card waits for a decision; a note mentions the member; an SLA target was missed."""

    MESSAGE = "message"
    WAITING = "waiting"
    CARD = "card"
    MENTION = "mention"
    SLA = "sla"


@dataclass(frozen=True)
class Notice:
    """`key` is the same in all consoles and differs for each occasion, so that of several tabs one shows it."""

    kind: NoticeKind
    subject: UUID
    key: str

    @classmethod
    def from_event(cls, event: dict[str, Any]) -> Notice:
        return cls(NoticeKind(event["kind"]), UUID(event["subject"]), event["key"])

    def as_frame(self, *, sound: bool, desktop: bool) -> dict[str, object]:
        is_card = self.kind == NoticeKind.CARD
        return {
            "type": "notice",
            "kind": self.kind.value,
            "key": self.key,
            "what": "card" if is_card else "session",
            "id": str(self.subject),
            "url": reverse("console-card" if is_card else "console-conversation", args=[self.subject]),
            "sound": sound,
            "desktop": desktop,
        }


def publish_notice(notice: Notice, *, to: Collection[UUID] | None = None) -> None:
    """Publish after commit to these members, or with None to every console, which then asks `concerns`."""
    tenant_id = current_tenant_id()
    groups = [group_of(tenant_id)] if to is None else [group_of_member(tenant_id, user_id) for user_id in to]
    event = {"kind": notice.kind.value, "subject": str(notice.subject), "key": notice.key, "to_everyone": to is None}
    for group in groups:
        poke_on_commit(group, {"type": "console.notice", **event})


def concerns(notice: Notice, user: User) -> bool:
    """Whether a notice to everyone concerns this member. Inside a scope. Raises `NotFound`."""
    if notice.kind == NoticeKind.CARD:
        card = get_card(notice.subject)
        return card.is_open and user in eligible_approvers(card)
    if notice.kind == NoticeKind.WAITING:
        responsible = responsible_for(session_by_id(notice.subject))
        return role_of(user) in ANSWERING_ROLES and (not responsible or user.pk in responsible)
    return role_of(user) == Role.OWNER
