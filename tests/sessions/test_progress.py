"""Who reads how far a piece of work is, when another customer proves who they are in the same conversation?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.receivers import MOVED_ON
from apps.work.models import WorkItem
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.sessions import make_session, say, served
from tests.factories.work import Desk, make_desk


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def approved_while(desk: Desk, approver: Any, *, present: str) -> dict[str, Any]:
    """The last progress frame of an item of C-1, approved while `present` is whom the visitor has proved to be."""
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        level = "verified" if present else "public"
        ChatSession.objects.filter(pk=item.session_id).update(customer=present, level=level)
    desk.decide(item, approver)
    return _last(desk, item)


def _last(desk: Desk, item: WorkItem) -> dict[str, Any]:
    with tenant_scope(desk.tenant):
        entry = ChronicleEntry.objects.filter(session_id=item.session_id, kind="status").order_by("seq").last()
    assert entry is not None
    return {"text": entry.text, **entry.payload}


@pytest.mark.parametrize("present", ["C-1", ""])
def test_progress_is_told_to_whom_it_belongs(desk: Desk, approver: Any, present: str) -> None:
    assert approved_while(desk, approver, present=present)["title"] == "Change H-1"


def test_progress_tells_another_customer_nothing_of_what_it_is(desk: Desk, approver: Any) -> None:
    told = approved_while(desk, approver, present="C-2")
    assert "H-1" not in str(told)
    assert told["text"] == MOVED_ON


async def test_progress_follows_the_language_of_the_visitor(tenant: Any, tmp_path: Path) -> None:
    desk = await in_thread(make_desk, tenant, tmp_path)
    session = await in_thread(make_session, desk.deployment)
    await in_thread(say, session, "Guten Tag, wo ist meine Bestellung?")
    await served(session)
    await in_thread(partial(desk.propose, session_id=session.pk))
    assert (await in_thread(_statuses, session))[-1].startswith("Jemand aus unserem Team sieht sich das an")


def _statuses(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        rows = ChronicleEntry.objects.filter(session_id=session.pk, kind="status").order_by("seq")
        return list(rows.values_list("text", flat=True))
