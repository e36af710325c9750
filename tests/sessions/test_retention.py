"""A company keeps what was said for as long as it says, and no longer, and never less of what is evidence."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.models import F

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.inbox.models import Note
from apps.memory.models import MemoryItem
from apps.sessions import retention
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.tenants.models import Retention
from apps.visitors.models import VisitorCard, VisitorFile
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.factories.upkeep import clean_up
from tests.platform.administration import browser_of, page_of

LONG_AGO = timedelta(days=31)


def keep(tenant: Any, **days: int) -> None:
    with tenant_scope(tenant):
        Retention.objects.create(**days)


def silent(deployment: Any, ago: timedelta = LONG_AGO) -> ChatSession:
    """A conversation in which something was said so long ago."""
    session = make_session(deployment)
    say(session, "My parcel is lost")
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(last_active_at=now() - ago, customer_name="Ada")
        ChronicleEntry.objects.filter(session_id=session.pk).update(payload={"citations": [{"quote": "Ada"}]})
    return session


def texts(session: ChatSession) -> set[str]:
    with tenant_scope(session.tenant_id):
        return set(ChronicleEntry.objects.filter(session_id=session.pk).values_list("text", flat=True))


def swept(tenant: Any) -> list[dict[str, Any]]:
    with tenant_scope(tenant):
        rows = AuditEntry.objects.filter(event=AuditEvent.RETENTION_SWEPT).order_by("seq")
        return [json.loads(row.data) for row in rows]


def test_conversation_is_forgotten_after_its_days(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    clean_up(deployment.tenant)
    assert texts(session) == {retention.FORGOTTEN}


def test_nothing_of_a_forgotten_frame_is_left(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        session.refresh_from_db()
        payloads = list(session.entries.values_list("payload", flat=True))
    assert payloads == [{"citations": []}]
    assert session.preview == retention.FORGOTTEN
    assert session.customer_name == ""


def test_what_visitors_sent_and_were_asked_is_forgotten_too(deployment: Any) -> None:
    """A file's name, a question, what the site said, a colleague's note: all words of the same conversation."""
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    moment = now()
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(attributes={"plan": "Ada's own"})
        Note.objects.create(session=session, text="Ada is cross", after=1, created_at=moment)
        VisitorCard.objects.create(
            session=session, kind="decision", payload={"question": "Is it Ada?"}, asked_by="x", created_at=moment,
            expires_at=moment + timedelta(hours=1),
        )  # fmt: skip
        for seq, kind in ((91, EntryKind.FILE), (92, EntryKind.DECISION)):
            ChronicleEntry.objects.create(
                session=session, seq=seq, kind=kind, sender=Sender.VISITOR, text="ada.pdf", payload={"name": "ada.pdf"},
                taint="external", created_at=moment,
            )  # fmt: skip
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        session.refresh_from_db()
        kept = [session.attributes, *Note.objects.values_list("text", flat=True)]
        kept += list(VisitorCard.objects.values_list("payload", flat=True))
        frames = list(session.entries.filter(seq__gt=90).values_list("kind", "text", "payload"))
    assert kept == [{}, retention.FORGOTTEN, {}]
    assert frames == [(EntryKind.STATUS, retention.FORGOTTEN, {})] * 2


def test_file_of_a_forgotten_conversation_is_gone(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    with tenant_scope(deployment.tenant_id):
        VisitorFile.objects.create(
            session=session,
            seq=91,
            name="ada.pdf",
            kind="pdf",
            size=9,
            digest="d" * 64,
            client_id="c",
            created_at=now(),
        )
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        assert not VisitorFile.objects.exists()


def test_what_work_a_frame_was_about_stays(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    told = {"work_item_id": "w", "status": "done", "title": "Refund for Ada", "next_steps": ["Call Ada"]}
    with tenant_scope(deployment.tenant_id):
        ChronicleEntry.objects.create(
            session=session, seq=90, kind=EntryKind.STATUS, sender=Sender.SYSTEM, text="Ada", payload=told,
            taint="auth", created_at=now(),
        )  # fmt: skip
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        assert ChronicleEntry.objects.get(seq=90).payload == {"work_item_id": "w", "status": "done"}


def test_what_models_read_of_a_message_is_forgotten(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    with tenant_scope(deployment.tenant_id):
        fields = {"message_seq": 1, "number": 1, "epoch": 0, "step": "closing", "started_at": now()}
        Turn.objects.create(session=session, read_as="Ada's parcel", **fields)
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        assert Turn.objects.get().read_as == retention.FORGOTTEN


def test_conversation_is_kept_within_its_days(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment, timedelta(days=29))
    clean_up(deployment.tenant)
    assert texts(session) == {"My parcel is lost"}


@pytest.mark.parametrize("days", [{}, {"memory_days": 1, "message_days": 1}])
def test_conversation_is_kept_for_ever_where_nobody_says_otherwise(deployment: Any, days: dict[str, int]) -> None:
    keep(deployment.tenant, **days)
    session = silent(deployment, timedelta(days=3000))
    clean_up(deployment.tenant)
    assert texts(session) == {"My parcel is lost"}


def test_another_tenants_conversation_is_kept(deployment: Any, other_tenant: Any) -> None:
    keep(deployment.tenant, conversation_days=1)
    theirs = silent(make_deployment(other_tenant))
    clean_up(deployment.tenant)
    assert texts(theirs) == {"My parcel is lost"}


def test_sweep_is_written_down_by_counts(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    silent(deployment)
    clean_up(deployment.tenant)
    assert swept(deployment.tenant) == [{"kind": "conversations", "count": 1, "entries": 1}]


def test_second_sweep_finds_nothing(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    silent(deployment)
    clean_up(deployment.tenant)
    clean_up(deployment.tenant)
    assert len(swept(deployment.tenant)) == 1


def test_visitor_who_comes_back_is_forgotten_again_later(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=30)
    session = silent(deployment)
    clean_up(deployment.tenant)
    say(session, "It is me again")
    with tenant_scope(deployment.tenant_id):
        rows = ChatSession.objects.filter(pk=session.pk)
        rows.update(last_active_at=now() - LONG_AGO, forgotten_at=F("last_active_at") - 2 * LONG_AGO)
    clean_up(deployment.tenant)
    assert texts(session) == {retention.FORGOTTEN}


def test_sweep_goes_in_bounded_steps(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    keep(deployment.tenant, conversation_days=30)
    for _ in range(3):
        silent(deployment)
    clean_up(deployment.tenant)
    assert [entry["count"] for entry in swept(deployment.tenant)] == [2, 1]


def test_audit_log_is_never_forgotten(deployment: Any) -> None:
    keep(deployment.tenant, conversation_days=1, memory_days=1, message_days=1)
    silent(deployment, timedelta(days=3000))
    with tenant_scope(deployment.tenant_id):
        before = AuditEntry.objects.count()
    clean_up(deployment.tenant)
    with tenant_scope(deployment.tenant_id):
        assert AuditEntry.objects.count() == before + 1


def remember(tenant: Any, ago: timedelta) -> None:
    with tenant_scope(tenant):
        made = now() - ago
        fields = {"memory_type": "semantic", "taint": "auth", "source_kind": "memory_op", "updated_at": made}
        MemoryItem.objects.create(scope="customer:1", content="Tea", reference="r", created_at=made, **fields)


@pytest.mark.parametrize(("days", "left"), [(10, 0), (12, 1)])
def test_memory_is_kept_for_the_companys_days(tenant: Any, days: int, left: int) -> None:
    keep(tenant, memory_days=days)
    remember(tenant, timedelta(days=11))
    clean_up(tenant)
    with tenant_scope(tenant):
        assert MemoryItem.objects.count() == left


def test_days_without_end_are_refused_by_the_table(tenant: Any) -> None:
    with pytest.raises(IntegrityError):
        keep(tenant, memory_days=0)


def test_owner_sets_it(tenant: Any, owner: Any) -> None:
    browser_of(owner).post(page_of(Retention, "add"), {"conversation_days": "30"})
    with tenant_scope(tenant):
        assert Retention.objects.get().conversation_days == 30


def test_too_many_days_are_refused_with_why(owner: Any) -> None:
    page = browser_of(owner).post(page_of(Retention, "add"), {"conversation_days": "3651"})
    assert "less than or equal to 3650" in page.content.decode()
