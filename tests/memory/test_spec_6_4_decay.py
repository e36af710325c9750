"""What is not used is archived, not deleted; what a person kept stays (spec 6.4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.memory import decay, memories, services
from apps.memory.enums import ArchiveReason, SourceKind, Tier, Trust
from apps.memory.models import MemoryItem
from apps.memory.rules import HALF_LIFE, LEAST_WEIGHT, MOST_USES, longest_idle, weight
from apps.memory.services import Editor
from kernel.clock import now
from kernel.errors import NotFound
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from tests.factories.memories import customer, kept_in, note, recalled, remember, say
from tests.factories.upkeep import clean_up

CAT, QUESTION = "The cat is called Whiskers", "What is the cat called?"
MINE = customer("C-1")


def archive(tenant: Any) -> None:
    with tenant_scope(tenant):
        while decay.archive_unused_batch():
            pass


def row(tenant: Any, memory: MemoryItem) -> MemoryItem:
    with tenant_scope(tenant):
        found: MemoryItem = MemoryItem.objects.get(pk=memory.pk)
        return found


def unused(tenant: Any) -> MemoryItem:
    """A memory with an embedding that was last used too long ago."""
    memory = remember(tenant, MINE, CAT)
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=memory.pk).update(used_at=now() - timedelta(days=200))
    return memory


# -- what stays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"pinned": True},
        {"trust": Trust.VERIFIED, "taint": Taint.AUTH},
        {"source_kind": SourceKind.KEPT_PROPOSAL},
        {"source_kind": SourceKind.CONVERSATION_RAW, "tier": Tier.LOW_REINGESTION},
        {"used_at": now() - timedelta(days=89)},
        {"uses": 1, "used_at": now() - timedelta(days=119)},
        {"uses": 99, "used_at": now() - timedelta(days=179)},
    ],
)
def test_what_is_confirmed_pinned_kept_or_used_stays(tenant: Any, fields: dict[str, Any]) -> None:
    memory = say(tenant, MINE, CAT, days_ago=300, **fields)
    archive(tenant)
    assert row(tenant, memory).archived_at is None


def test_memories_of_another_tenant_stay(tenant: Any, other_tenant: Any) -> None:
    memory = say(other_tenant, MINE, CAT, days_ago=300)
    archive(tenant)
    assert row(other_tenant, memory).archived_at is None


def test_use_of_another_tenants_memory_is_not_recorded(tenant: Any, other_tenant: Any) -> None:
    memory = say(other_tenant, MINE, CAT)
    with tenant_scope(tenant):
        decay.record_use([str(memory.pk)])
    assert row(other_tenant, memory).uses == 0


# -- what is archived ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("uses", "days"), [(0, 91), (1, 121), (3, 151), (7, 181), (99, 181)])
def test_what_is_not_used_for_long_enough_is_archived(tenant: Any, uses: int, days: int) -> None:
    memory = say(tenant, MINE, CAT, days_ago=300, uses=uses, used_at=now() - timedelta(days=days))
    archive(tenant)
    assert row(tenant, memory).archive_reason == ArchiveReason.UNUSED
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.MEMORIES_ARCHIVED).count() == 1


def test_more_than_one_batch_is_archived(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decay, "_BATCH", 2)
    for number in range(5):
        say(tenant, MINE, f"{CAT} {number}", days_ago=300)
    archive(tenant)
    with tenant_scope(tenant):
        assert not MemoryItem.objects.filter(archived_at__isnull=True).exists()


def test_clean_up_archives_and_deletes_nothing(tenant: Any) -> None:
    memory = unused(tenant)
    clean_up(tenant)
    assert row(tenant, memory).archived_at is not None
    assert kept_in(tenant, MINE) == [CAT]


def test_archived_memory_is_not_recalled_until_it_is_restored(tenant: Any) -> None:
    memory = unused(tenant)
    archive(tenant)
    assert recalled(tenant, [MINE], QUESTION, tiers=tuple(Tier)) == []
    with tenant_scope(tenant):
        services.restore(memory.pk, by=Editor("user:1"))
    archive(tenant)
    assert recalled(tenant, [MINE], QUESTION) == [CAT]
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event=AuditEvent.MEMORY_RESTORED).subject == f"memory:{memory.pk}"


def test_memory_of_another_company_is_not_restored(tenant: Any, other_tenant: Any) -> None:
    theirs = unused(other_tenant)
    archive(other_tenant)
    with pytest.raises(NotFound), tenant_scope(tenant):
        services.restore(theirs.pk, by=Editor("user:1"))


def test_restoring_what_is_recalled_changes_nothing(tenant: Any) -> None:
    memory = say(tenant, MINE, CAT)
    with tenant_scope(tenant):
        services.restore(memory.pk, by=Editor("user:1"))
        assert not AuditEntry.objects.filter(event=AuditEvent.MEMORY_RESTORED).exists()
    assert row(tenant, memory).used_at is None


def test_what_is_said_again_is_recalled_again(tenant: Any) -> None:
    memory = unused(tenant)
    archive(tenant)
    with tenant_scope(tenant):
        assert memories.store(note(MINE, CAT))
    assert row(tenant, memory).archived_at is None


@pytest.mark.parametrize("reason", [ArchiveReason.CONTRADICTED, ArchiveReason.STAFF])
def test_visitor_who_says_again_what_a_person_archived_restores_nothing(tenant: Any, reason: ArchiveReason) -> None:
    memory = remember(tenant, MINE, CAT)
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=memory.pk).update(archived_at=now(), archive_reason=reason)
        assert memories.store(note(MINE, CAT))
    assert row(tenant, memory).archive_reason == reason
    assert recalled(tenant, [MINE], QUESTION) == []


def test_uses_within_an_hour_count_once(tenant: Any) -> None:
    memory = say(tenant, MINE, CAT)
    for _ in range(3):
        with tenant_scope(tenant):
            decay.record_use([str(memory.pk), str(memory.pk)])
    assert row(tenant, memory).uses == 1
    with tenant_scope(tenant):
        MemoryItem.objects.filter(pk=memory.pk).update(used_at=now() - decay.COUNTED_ONCE - timedelta(seconds=1))
        decay.record_use([str(memory.pk)])
    assert row(tenant, memory).uses == 2


# -- the rule --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 50), st.integers(0, 400), st.integers(1, 100))
def test_weight_falls_without_use_and_rises_with_it(uses: int, days: int, more: int) -> None:
    idle = timedelta(days=days)
    assert weight(uses, idle + timedelta(days=more)) < weight(uses, idle)
    assert weight(uses + more, idle) >= weight(uses, idle)
    assert weight(uses, idle + HALF_LIFE) == pytest.approx(weight(uses, idle) / 2)


@given(st.integers(0, 2 * MOST_USES))
def test_longest_idle_time_is_where_the_weight_is_least(uses: int) -> None:
    assert weight(uses, longest_idle(uses)) == pytest.approx(LEAST_WEIGHT)
