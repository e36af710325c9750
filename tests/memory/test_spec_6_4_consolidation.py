"""Duplicates are merged inside one scope, trust is never gained, and what a person kept is not touched (spec 6.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.memory import consolidation, memories
from apps.memory.enums import SourceKind, Trust
from apps.memory.models import MemoryConsolidation, MemoryItem
from kernel.clock import now
from kernel.taint import Taint, join
from kernel.tenancy import tenant_scope
from tests.factories.memories import conversation, customer, kept_in, note, remember
from tests.factories.work import Hands

CAT, AGAIN, ONCE_MORE = "The cat is called Whiskers", "the  cat is called whiskers.", "The cat is called\nWhiskers!"
MINE = customer("C-1")


def merge(tenant: Any) -> int:
    with tenant_scope(tenant):
        return consolidation.merge(consolidation.find_duplicates())


def row(tenant: Any, memory_id: UUID) -> MemoryItem:
    with tenant_scope(tenant):
        found: MemoryItem = MemoryItem.objects.get(pk=memory_id)
        return found


# -- what must not be merged -----------------------------------------------------------------------------------------


def test_memories_of_another_tenant_are_untouched(tenant: Any, other_tenant: Any) -> None:
    remember(other_tenant, MINE, CAT)
    remember(other_tenant, MINE, AGAIN)
    assert merge(tenant) == 0
    assert kept_in(other_tenant, MINE) == [CAT, AGAIN]


def test_customers_and_conversations_are_not_merged_into_each_other(tenant: Any) -> None:
    for scope in (MINE, customer("C-2"), conversation()):
        remember(tenant, scope, CAT)
    assert merge(tenant) == 0


def test_memory_that_a_person_confirmed_stays_as_it_is(tenant: Any) -> None:
    confirmed = remember(tenant, MINE, CAT, taint=Taint.AUTH)
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=confirmed.pk).update(trust=Trust.VERIFIED)
    remember(tenant, MINE, AGAIN)
    assert merge(tenant) == 0
    assert row(tenant, confirmed.pk).taint == Taint.AUTH


def test_kept_proposal_stays_as_it_is(tenant: Any) -> None:
    remember(tenant, MINE, CAT, source=SourceKind.KEPT_PROPOSAL, taint=Taint.AUTH)
    remember(tenant, MINE, AGAIN)
    assert merge(tenant) == 0


def test_linked_memory_and_the_one_it_is_linked_to_stay(tenant: Any) -> None:
    one, other = remember(tenant, MINE, CAT), remember(tenant, MINE, "The vet is Dr Moss")
    remember(tenant, MINE, AGAIN)
    remember(tenant, MINE, "the vet is dr moss")
    with tenant_scope(tenant):
        assert memories.link(str(one.pk), to=str(other.pk), kind="treated by", scopes=[MINE])
    assert merge(tenant) == 0


@pytest.mark.parametrize("text", ["The limit is 30.", "The limit is 3.0", "The limit is 3?", "The limit isn't 3"])
def test_other_statement_is_no_duplicate(tenant: Any, text: str) -> None:
    remember(tenant, MINE, "The limit is 3")
    remember(tenant, MINE, text)
    assert merge(tenant) == 0


def test_memory_that_changed_after_it_was_found_is_not_merged(tenant: Any) -> None:
    remember(tenant, MINE, CAT)
    changed = remember(tenant, MINE, AGAIN)
    with tenant_scope(tenant):
        groups = consolidation.find_duplicates()
        MemoryItem.objects.filter(pk=changed.pk).update(content="The cat is called Felix")
        assert consolidation.merge(groups) == 0


# -- what a merge keeps ----------------------------------------------------------------------------------------------


def test_oldest_stays_and_the_log_names_the_others(tenant: Any) -> None:
    oldest, *others = [remember(tenant, MINE, text) for text in (CAT, AGAIN, ONCE_MORE)]
    assert merge(tenant) == 2
    assert kept_in(tenant, MINE) == [CAT]
    with tenant_scope(tenant):
        logged = set(MemoryConsolidation.objects.values_list("merged_id", "kept_id", "reason"))
        assert AuditEntry.objects.filter(event=AuditEvent.MEMORIES_MERGED).count() == 1
    assert logged == {(other.pk, oldest.pk, "duplicate") for other in others}


def test_mark_of_a_merged_memory_stays(tenant: Any) -> None:
    oldest = remember(tenant, MINE, CAT)
    remember(tenant, MINE, AGAIN, marked=True)
    merge(tenant)
    assert row(tenant, oldest.pk).marked


def test_latest_end_of_validity_stays(tenant: Any) -> None:
    oldest, later = remember(tenant, MINE, CAT), remember(tenant, MINE, AGAIN)
    merge(tenant)
    assert row(tenant, oldest.pk).valid_until == later.valid_until


def test_expired_memory_is_not_prolonged(tenant: Any) -> None:
    expired = remember(tenant, MINE, CAT)
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=expired.pk).update(valid_until=now() - timedelta(seconds=1))
    remember(tenant, MINE, AGAIN)
    assert merge(tenant) == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taints=st.lists(st.sampled_from(Taint), min_size=2, max_size=5), pause=st.integers(1, 4))
def test_taint_never_drops_in_any_order_of_merges(tenant: Any, taints: list[Taint], pause: int) -> None:
    with tenant_scope(tenant):
        MemoryItem.objects.filter(scope=str(MINE)).delete()
    for number, taint in enumerate(taints):
        remember(tenant, MINE, CAT + " " * number + "!" * number, taint=taint)
        if number == pause:
            merge(tenant)
    merge(tenant)
    with tenant_scope(tenant):
        (left,) = MemoryItem.objects.filter(scope=str(MINE))
    assert left.taint == join(*taints)


# -- when it runs ----------------------------------------------------------------------------------------------------


def test_stored_memories_owe_one_run_for_the_company(tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        for text in (CAT, AGAIN):
            assert memories.store(note(MINE, text))
        owed = QueueMessage.objects.filter(kind=Kind.MEMORY_CONSOLIDATION)
        assert owed.count() == 1
        assert owed.get().queue == Queue.TRUSTED
        assert now() < owed.get().available_at <= now() + consolidation.INTERVAL
    with tenant_scope(other_tenant):
        assert not QueueMessage.objects.filter(kind=Kind.MEMORY_CONSOLIDATION).exists()


def test_run_after_a_crash_between_batches_completes_the_rest(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        remember(tenant, customer(f"C-{number}"), CAT)
        remember(tenant, customer(f"C-{number}"), AGAIN)
    with tenant_scope(tenant):
        groups = consolidation.find_duplicates()
    with tenant_scope(tenant):
        assert consolidation.merge(groups[:1]) == 1
    with pytest.raises(ZeroDivisionError):
        _merge_and_crash(tenant, groups[1:2])
    monkeypatch.setattr(consolidation, "INTERVAL", timedelta(microseconds=1))
    monkeypatch.setattr(consolidation, "BATCH", 1)
    with tenant_scope(tenant):
        consolidation.enqueue_consolidation()
    Hands(tenant).work(Queue.TRUSTED)
    assert [kept_in(tenant, customer(f"C-{number}")) for number in range(3)] == [[CAT]] * 3
    with tenant_scope(tenant):
        assert MemoryConsolidation.objects.count() == 3


def _merge_and_crash(tenant: Any, groups: list[list[UUID]]) -> None:
    with tenant_scope(tenant):
        assert consolidation.merge(groups) == 1
        raise ZeroDivisionError
