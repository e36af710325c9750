"""Signal receivers that tell open consoles what to refresh, after commit and without content; and the filters
that can be saved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import UUID

from django.utils.functional import Promise

from apps.approvals.models import ApprovalToken, Card, TokenRevocation
from apps.approvals.signals import card_changed, question_changed, token_revoked
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from apps.autonomy.signals import task_event
from apps.console.members import group_of, group_of_member
from apps.console.pages.inbox import filters as inbox_filters
from apps.console.pages.review import filters as review_filters
from apps.guard.schemas import BudgetFacts
from apps.guard.signals import budget_alert
from apps.inbox.enums import ViewPage
from apps.inbox.saved_views import register_page
from apps.safety.signals import loop_changed
from apps.sessions.signals import session_changed
from apps.tenants.signals import member_removed
from apps.work.models import WorkItem
from apps.work.signals import work_changed
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


@question_changed.connect
def _question_changed(card_id: UUID) -> None:
    _poke("cards")


@token_revoked.connect
def _token_revoked(token: ApprovalToken, revocation: TokenRevocation) -> None:
    _poke("cards")


@session_changed.connect
def _session_changed(session_id: UUID) -> None:
    _poke(f"session:{session_id}")


@work_changed.connect
def _work_changed(item: WorkItem, status: str, text: str | Promise, next_steps: list[str]) -> None:
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
