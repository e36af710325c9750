"""Does what happened get written once, in order, with the change, and never otherwise?"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from kernel.tenancy import ScopeError, tenant_scope
from tests.factories.audit import make_entries, verdict
from tests.rivals import race

WRITERS = 64


def _entries(tenant: Any) -> list[AuditEntry]:
    with tenant_scope(tenant):
        return list(AuditEntry.objects.order_by("seq"))


def test_record_outside_scope_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        record(AuditEvent.SESSION_STARTED)


@pytest.mark.parametrize(
    "prose",
    [
        {"reason": "two words"},
        {"names": ["Maria Ortega"]},
        {"deep": {"text": "a b"}},
        {"two words": 1},
        {"long": "x" * 121},
    ],
    ids=["value", "in_list", "nested", "key", "too_long"],
)
def test_record_prose_is_refused(tenant: Any, prose: dict[str, Any]) -> None:
    with tenant_scope(tenant), pytest.raises(ValueError, match="prose"):
        record(AuditEvent.SESSION_STARTED, data=prose)


@pytest.mark.parametrize("word", ["two words", "line\nbreak", "<b>", '"quoted"'])
def test_record_actor_that_is_no_word_is_refused(tenant: Any, word: str) -> None:
    with tenant_scope(tenant), pytest.raises(ValueError, match="prose"):
        record(AuditEvent.SESSION_STARTED, actor=word)


def test_record_unserialisable_value_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ValueError, match="bytes"):
        record(AuditEvent.SESSION_STARTED, data={"secret": b"x"})


def test_record_unknown_event_is_refused(tenant: Any) -> None:
    with tenant_scope(tenant), pytest.raises(ValueError):
        record("something_else")  # type: ignore[arg-type]


def test_entry_of_rolled_back_scope_is_not_written(tenant: Any) -> None:
    with suppress(RuntimeError), tenant_scope(tenant):
        record(AuditEvent.SESSION_STARTED)
        raise RuntimeError
    assert _entries(tenant) == []


def test_entries_of_one_scope_are_numbered_in_order(tenant: Any) -> None:
    make_entries(tenant, 3)
    assert [(entry.seq, entry.subject) for entry in _entries(tenant)] == [
        (1, "session:0"),
        (2, "session:1"),
        (3, "session:2"),
    ]


def test_first_entry_links_to_genesis(tenant: Any) -> None:
    make_entries(tenant, 1)
    assert _entries(tenant)[0].prev_hash == "genesis"


def test_entry_keeps_its_returned_id(tenant: Any) -> None:
    with tenant_scope(tenant):
        entry_id = record(AuditEvent.SESSION_STARTED)
    assert _entries(tenant)[0].entry_id == entry_id


def test_two_tenants_have_separate_chains(tenant: Any, other_tenant: Any) -> None:
    make_entries(tenant, 2)
    make_entries(other_tenant, 1)
    assert [len(_entries(tenant)), len(_entries(other_tenant))] == [2, 1]


def test_64_concurrent_writers_leave_one_unbroken_chain(tenant: Any) -> None:
    race(*[lambda: make_entries(tenant, 3)] * WRITERS)
    assert verdict("--tenant", tenant.slug).startswith(f"ok tenant={tenant.slug} entries={WRITERS * 3} ")
