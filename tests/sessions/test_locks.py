"""A locked conversation holds up only those who want the same lock, and they read what its holder has committed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, Turn
from apps.sessions.queries import session_with
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session
from tests.rivals import interrupted


def _begin_turn(session: ChatSession) -> None:
    """A row that refers to the conversation, and an audit entry: the commit checks the one while it holds the other."""
    try:
        with tenant_scope(session.tenant_id):
            turn = Turn(session_id=session.pk, message_seq=1, number=1, epoch=0, step="x", started_at=now())
            turn.save(force_insert=True)
            record(AuditEvent.TURN_COMPLETED)
    finally:
        connection.close()


def test_locked_conversation_lets_a_row_that_refers_to_it_commit(deployment: Any) -> None:
    session = make_session(deployment)
    with ThreadPoolExecutor(1) as rival, tenant_scope(session.tenant_id):
        lock_session(session.pk)
        rival.submit(_begin_turn, session).result(timeout=60)
    with tenant_scope(session.tenant_id):
        assert Turn.objects.filter(session_id=session.pk).count() == 1


def test_what_is_sent_with_the_lock_is_read_once_it_is_held(deployment: Any) -> None:
    session = make_session(deployment)

    def hold(meet: Callable[[], None]) -> None:
        with tenant_scope(session.tenant_id):
            lock_session(session.pk)
            meet()
            ChatSession.objects.filter(pk=session.pk).update(customer_name="Ada")

    def wait() -> str:
        with tenant_scope(session.tenant_id):
            along = session_with(session.pk)
            lock_session(session.pk, along)
            return along.value.customer_name

    assert interrupted(hold, wait) == [None, "Ada"]
