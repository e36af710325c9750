"""A customer reads what is remembered about them, and nothing of anybody else."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.memory import services
from apps.memory.enums import ScopeKind, SourceKind, Tier
from apps.memory.schemas import Scope, conversation_scope
from apps.memory.services import Editor
from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from apps.visitors import customer_memories
from kernel.errors import NotFound
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.memories import conversation, customer, give, remember, verified
from tests.factories.sessions import make_session

CAT, DOG = "The cat is called Whiskers.", "The dog is called Rex."
HTML = "<script>alert(1)</script> & <b>bold</b>"


def exported(tenant: Any, of: str = "C-1") -> list[str]:
    with tenant_scope(tenant):
        content = json.loads(customer_memories.export_json(of, actor="system"))
    return [each["text"] for each in content["memories"]]


def session_of(deployment: Any, subject: str) -> ChatSession:
    session = make_session(deployment)
    with tenant_scope(deployment.tenant_id):
        give(session, verified(subject))
    return session


def test_nothing_of_other_customers_companies_and_visitors(tenant: Any, other_tenant: Any) -> None:
    remember(other_tenant, customer("C-1"), DOG)
    for scope in (customer("C-2"), customer("x/C-1"), conversation(), Scope(ScopeKind.TENANT, str(tenant.pk))):
        remember(tenant, scope, DOG, taint=Taint.AUTH)
    remember(tenant, Scope(ScopeKind.CONVERSATION, f"{make_id()}/x/C-1"), DOG)
    remember(tenant, Scope(ScopeKind.CONVERSATION, f"{make_id()}/C-11"), DOG)
    assert exported(tenant) == []


def make_id() -> str:
    return conversation().id


def test_their_memories_and_what_was_said_to_them_word_for_word(tenant: Any, deployment: Any) -> None:
    session = session_of(deployment, "C-1")
    remember(tenant, customer("C-1"), CAT)
    said = conversation_scope(session.pk, "C-1")
    remember(tenant, said, DOG, tier=Tier.LOW_REINGESTION, source=SourceKind.CONVERSATION_RAW, session_id=session.pk)
    remember(tenant, conversation(session.pk), "Hello", tier=Tier.LOW_REINGESTION, session_id=session.pk)
    assert exported(tenant) == [CAT, DOG, "Hello"]


def test_what_was_said_before_anybody_was_verified_is_left_out_where_there_were_two_customers(
    tenant: Any, deployment: Any
) -> None:
    session = session_of(deployment, "C-1")
    remember(tenant, conversation(session.pk), "Hello", session_id=session.pk)
    remember(tenant, conversation_scope(session.pk, "C-2"), DOG, session_id=session.pk)
    remember(tenant, conversation_scope(session.pk, "C-1"), CAT, session_id=session.pk)
    assert exported(tenant) == [CAT]
    assert exported(tenant, "C-2") == [DOG]


def test_export_says_source_and_dates_and_nothing_of_staffs(tenant: Any) -> None:
    item = remember(tenant, customer("C-1"), CAT, tags=("internal",), marked=True)
    services.correct(tenant.pk, item.pk, DOG, by=Editor("user:secret"))
    with tenant_scope(tenant):
        text = customer_memories.export_json("C-1", actor="system")
    (memory,) = json.loads(text)["memories"]
    assert set(memory) == {"text", "source", "stored_at", "changed_at", "kept_until"}
    assert memory["source"] == "Noted by our assistant"
    for hidden in (CAT, "internal", "user:secret", "external", str(item.pk)):
        assert hidden not in text


def test_page_shows_hostile_texts_and_ids_as_texts(tenant: Any) -> None:
    remember(tenant, customer(HTML), HTML)
    with tenant_scope(tenant):
        page = customer_memories.export_html(HTML, actor="system")
    assert "<script>" not in page
    assert "<b>" not in page
    assert escape(HTML) in page


@pytest.mark.parametrize("source", SourceKind)
def test_every_source_has_words_for_the_customer(tenant: Any, source: SourceKind) -> None:
    remember(tenant, customer("C-1"), CAT, source=source)
    assert exported(tenant) == [CAT]


def test_export_is_audited_without_the_customers_id(tenant: Any) -> None:
    remember(tenant, customer("C-1"), CAT)
    exported(tenant)
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="customer_memory_exported")
    assert json.loads(entry.data)["count"] == 1
    assert "C-1" not in entry.data


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_id_that_nobody_has_is_not_found(tenant: Any, name: str) -> None:
    with tenant_scope(tenant), pytest.raises(NotFound):
        customer_memories.export_json(name, actor="system")


# -- over HTTP ---------------------------------------------------------------------------------------------------------

ADDRESS = "/api/v1/memories/customer"


def by_key(tenant: Any, *scopes: KeyScope, **query: str) -> Any:
    return Api(tenant, *scopes).get(ADDRESS, **query)


def test_key_with_the_scope_for_reading_exports_both_kinds(tenant: Any) -> None:
    remember(tenant, customer("C-1"), CAT)
    answer = by_key(tenant, KeyScope.MEMORY_READ, customer="C-1")
    assert [each["text"] for each in answer.json()["memories"]] == [CAT]
    page = by_key(tenant, KeyScope.MEMORY_READ, customer="C-1", kind="html")
    assert CAT in page.content.decode()
    assert page["Content-Disposition"].startswith("attachment")


def test_other_scope_other_company_and_bad_query(tenant: Any, other_tenant: Any) -> None:
    remember(tenant, customer("C-1"), CAT)
    assert by_key(tenant, KeyScope.MEMORY_WRITE, customer="C-1").status_code == 403
    assert by_key(other_tenant, customer="C-1").json()["memories"] == []
    assert by_key(tenant).status_code == 400
    assert by_key(tenant, customer="C-1", kind="xml").status_code == 400
