"""Signal receivers that tell open consoles what to refresh, after commit and without content; and the filters
that can be saved."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from apps.approvals.enums import CardStatus
from apps.approvals.models import ApprovalToken, Card, TokenRevocation
from apps.approvals.signals import (
    card_changed,
    card_returned,
    notice_choice_changed,
    question_changed,
    token_revoked,
)
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from apps.autonomy.signals import task_event
from apps.console.members import group_of, group_of_member
from apps.console.notices import Notice, NoticeKind, publish_notice
from apps.console.pages.inbox import filters as inbox_filters
from apps.console.pages.review import filters as review_filters
from apps.guard.schemas import BudgetFacts
from apps.guard.signals import budget_alert
from apps.inbox.enums import ViewPage
from apps.inbox.models import Note, SlaClock
from apps.inbox.reading import PUT_IN
from apps.inbox.saved_views import register_page
from apps.inbox.signals import members_mentioned, sla_missed
from apps.inbox.sla_tracking import responsible_for
from apps.safety.signals import loop_changed
from apps.sessions.enums import Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import entries_appended, person_wanted, session_changed
from apps.tenants.signals import member_removed, tenant_changed
from apps.work.models import WorkItem
from apps.work.signals import Progress, work_changed
from kernel.live import poke_on_commit, publish_on_commit
from kernel.tenancy import current_tenant_id

# When each tenant's consoles were last told of routine steps of agents (monotonic seconds).
_last_safety_poke: dict[UUID, float] = {}


register_page(ViewPage.INBOX, inbox_filters.saved_parameters)
register_page(ViewPage.REVIEW, review_filters.saved_parameters)


def _poke(what: str, **ids: str) -> None:
    poke_on_commit(group_of(current_tenant_id()), {"type": "console.changed", "what": what, **ids})


@card_changed.connect
def _card_changed(card: Card) -> None:
    _poke("cards")
    if card.status == CardStatus.OPEN and not card.of_kind.is_offered:
        publish_notice(Notice(NoticeKind.CARD, card.pk, f"card:{card.pk}"))


@question_changed.connect
def _question_changed(card_id: UUID) -> None:
    _poke("cards")


@card_returned.connect
def _card_returned(card_id: UUID, answer_seq: int) -> None:
    publish_notice(Notice(NoticeKind.CARD, card_id, f"card:{card_id}:{answer_seq}"))


@notice_choice_changed.connect
def _notice_choice_changed(user_id: UUID) -> None:
    poke_on_commit(group_of_member(current_tenant_id(), user_id), {"type": "console.choice"})


@tenant_changed.connect
def _tenant_changed() -> None:
    """Quiet hours are in the company's time zone, which each open console has read with the member's choice."""
    poke_on_commit(group_of(current_tenant_id()), {"type": "console.choice"})


@token_revoked.connect
def _token_revoked(token: ApprovalToken, revocation: TokenRevocation) -> None:
    _poke("cards")


@session_changed.connect
def _session_changed(session_id: UUID) -> None:
    _poke(f"session:{session_id}")


@entries_appended.connect
def _entries_appended(session: ChatSession, entries: Sequence[ChronicleEntry]) -> None:
    """What the visitor writes concerns the member who answers, or who is to answer a visitor who waits."""
    written = [entry for entry in entries if entry.sender == Sender.VISITOR and entry.kind in PUT_IN]
    if not written or session.is_test:
        return
    if session.owner == Owner.HUMAN:
        concerned = {session.owner_user_id} if session.owner_user_id else set()
    elif session.wanted_person_at is not None and len(responsible := responsible_for(session)) == 1:
        concerned = responsible
    else:
        return
    key = f"message:{session.pk}:{written[-1].seq}"
    publish_notice(Notice(NoticeKind.MESSAGE, session.pk, key), to=concerned)


@person_wanted.connect
def _person_wanted(session: ChatSession) -> None:
    if not session.is_test:
        publish_notice(Notice(NoticeKind.WAITING, session.pk, f"waiting:{session.pk}:{session.seq}"))


@members_mentioned.connect
def _members_mentioned(note: Note, user_ids: Collection[UUID]) -> None:
    publish_notice(Notice(NoticeKind.MENTION, note.session_id, f"mention:{note.pk}"), to=user_ids)


@sla_missed.connect
def _sla_missed(clock: SlaClock, responsible: Collection[UUID]) -> None:
    """Notify those who are responsible, or the owners if there are none."""
    publish_notice(Notice(NoticeKind.SLA, clock.session_id, f"sla:{clock.pk}"), to=responsible or None)


@work_changed.connect
def _work_changed(item: WorkItem, status: str, progress: Progress) -> None:
    _poke(f"session:{item.session_id}" if item.session_id else "inbox")


@budget_alert.connect
def _budget_alert(budget: BudgetFacts, threshold: int) -> None:
    _poke("spending")


@loop_changed.connect
def _loop_changed(at_once: bool) -> None:
    """Tell consoles about routine steps of agents at most once a second per tenant; the sweep finds the rest."""
    tenant_id, moment = current_tenant_id(), time.monotonic()
    if at_once or moment - _last_safety_poke.get(tenant_id, 0.0) >= 1:
        _last_safety_poke[tenant_id] = moment
        _poke("safety")


@member_removed.connect
def _member_removed(user_id: UUID) -> None:
    publish_on_commit(group_of_member(current_tenant_id(), user_id), {"type": "console.ended"})


@task_event.connect
def _task_event(session: AutonomousSession, event: TaskEvent, data: Mapping[str, object]) -> None:
    """Tell consoles about `task:…` events with their ids only; the page reads the rest."""
    _poke(event.value, task=str(session.task_id), session=str(session.pk))
