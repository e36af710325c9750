"""Which hash has an entry, and which place does a broken chain name first?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.audit.rules import ChainBreak, Checkpoint, Entry, Head, compute_hash, verify_entries
from kernel.canonical import sha256_hex

CHAIN = "11111111-1111-4111-8111-111111111111"


def _entry(seq: int, prev: str, **fields: str) -> Entry:
    made = Entry(
        chain=CHAIN,
        seq=seq,
        entry_id=f"22222222-2222-4222-8222-{seq:012d}",
        event="session_started",
        actor="visitor:7",
        subject="session:9",
        data='{"a":1}',
        timestamp="2026-02-01T12:00:00+00:00",
        prev_hash=prev,
        entry_hash="",
    )
    made = replace(made, **fields)
    return replace(made, entry_hash=compute_hash(made))


def _chain(length: int) -> list[Entry]:
    entries: list[Entry] = []
    for seq in range(1, length + 1):
        entries.append(_entry(seq, entries[-1].entry_hash if entries else "genesis"))
    return entries


def _first_break(
    entries: list[Entry], head: Head | None = None, checkpoints: tuple[Checkpoint, ...] = ()
) -> ChainBreak | None:
    end = head or (Head(entries[-1].seq, entries[-1].entry_hash) if entries else Head())
    return verify_entries(entries, chain=CHAIN, head=end, checkpoints=checkpoints, keys={}).broken


def test_contract_formula_over_vector_a1_gives_its_hash() -> None:
    fields = {"entry_id": "e1", "event": "stream_started", "data": '{"a": 1}', "timestamp": "2026-02-01T12:00:00+00:00"}
    assert sha256_hex({**fields, "prev_hash": "genesis"}) == (
        "2b9ad0638b41fd52aaf5eea6221bf35d6113303f425c9039af446cba47a41e08"
    )


def test_contract_formula_over_vector_a2_gives_its_hash() -> None:
    prev = "2b9ad0638b41fd52aaf5eea6221bf35d6113303f425c9039af446cba47a41e08"
    fields = {"entry_id": "e2", "event": "x", "data": "{}", "timestamp": "2026-02-01T12:00:01+00:00", "prev_hash": prev}
    assert sha256_hex(fields) == "a807d8642191473b939566bb196f7376a1d07f441ded05373d8a9d45b02c41a4"


def test_hash_of_first_documented_vector_is_stable() -> None:
    assert _entry(1, "genesis").entry_hash == "2a811c387747c07582adab517ce8df45be488c3d97f1b66d62a04fd0c734fc6f"


def test_hash_of_second_documented_vector_is_stable() -> None:
    half_past = "2026-02-01T12:00:00.500000+00:00"
    second = _entry(2, _entry(1, "genesis").entry_hash, data="{}", subject="", timestamp=half_past)
    assert second.entry_hash == "62904b291fc7a4ec18c7fc8cb5b83de092fdaa5248076e911f0b880be30db5a8"


@pytest.mark.parametrize("field", ["chain", "entry_id", "event", "actor", "subject", "data", "timestamp", "prev_hash"])
def test_hash_covers_every_text_field(field: str) -> None:
    entry = _entry(1, "genesis")
    assert compute_hash(replace(entry, **{field: "other"})) != entry.entry_hash


def test_hash_covers_sequence_number() -> None:
    entry = _entry(1, "genesis")
    assert compute_hash(replace(entry, seq=2)) != entry.entry_hash


def test_sound_chain_has_no_break() -> None:
    assert _first_break(_chain(4)) is None


def test_empty_chain_has_no_break() -> None:
    assert _first_break([]) is None


def test_removed_entry_is_missing() -> None:
    entries = _chain(4)
    assert _first_break([*entries[:1], *entries[2:]]) == ChainBreak(2, "missing")


def test_changed_content_names_its_own_place() -> None:
    entries = _chain(4)
    entries[1] = replace(entries[1], actor="visitor:8")
    assert _first_break(entries) == ChainBreak(2, "content")


def test_changed_and_rehashed_entry_breaks_the_next_link() -> None:
    entries = _chain(4)
    entries[1] = _entry(2, entries[0].entry_hash, actor="visitor:8")
    assert _first_break(entries) == ChainBreak(3, "link")


def test_entry_out_of_order_is_named() -> None:
    entries = _chain(3)
    assert _first_break([replace(entries[2], seq=-4), *entries[:2]]) == ChainBreak(-4, "order")


def test_entry_of_other_chain_is_content() -> None:
    foreign = _entry(1, "genesis", chain="33333333-3333-4333-8333-333333333333")
    assert _first_break([foreign]) == ChainBreak(1, "content")


def test_cut_tail_is_told_by_the_head() -> None:
    entries = _chain(4)
    assert _first_break(entries[:2], Head(4, entries[3].entry_hash)) == ChainBreak(3, "tail")


def test_entry_behind_the_head_is_told() -> None:
    entries = _chain(4)
    assert _first_break(entries, Head(3, entries[2].entry_hash)) == ChainBreak(4, "head")


def test_lost_head_is_told() -> None:
    assert _first_break(_chain(2), Head()) == ChainBreak(1, "head")


def test_unsigned_checkpoint_is_told() -> None:
    entries = _chain(3)
    claim = Checkpoint(CHAIN, 2, entries[1].entry_hash, 2, "2026-02-01T12:00:00+00:00", "0" * 16, "AA==")
    assert _first_break(entries, checkpoints=(claim,)) == ChainBreak(2, "signature")


def test_earlier_break_wins_over_unsigned_checkpoint() -> None:
    entries = _chain(3)
    entries[0] = replace(entries[0], data="{}")
    claim = Checkpoint(CHAIN, 2, entries[1].entry_hash, 2, "2026-02-01T12:00:00+00:00", "0" * 16, "AA==")
    assert _first_break(entries, checkpoints=(claim,)) == ChainBreak(1, "content")
