"""A chain is signed up to its end, by the platform's key, and a tail cut off later is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.audit import checkpoint_file, checkpoints
from apps.audit.checkpoints import write_checkpoint, write_checkpoints
from apps.audit.models import AuditKey
from apps.audit.queries import PLATFORM_NAME, Chain, checkpoints_of, find_chain, moved_chains, public_keys
from apps.audit.rules import is_signed
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.receivers import CHECKPOINTS_EVERY
from kernel.clock import now
from kernel.errors import SilasError
from kernel.seal import unseal
from kernel.tenancy import INSTALLATION, platform_scope, tenant_scope
from tests.factories.audit import export, make_entries, stranger_verdict, tampering, verdict
from tests.factories.upkeep import stand
from tests.rivals import race


def _checkpoints(tenant: Any) -> Any:
    with tenant_scope(tenant):
        return checkpoints_of(tenant.pk)


def _chain(tenant: Any) -> Chain:
    return Chain(tenant.slug, tenant.pk)


def _cut(cursor: Any, chain: UUID, seq: int) -> None:
    cursor.execute("DELETE FROM audit_auditentry WHERE chain = %s AND seq > %s", [chain, seq])


def _cut_with_head(cursor: Any, chain: UUID, seq: int) -> None:
    _cut(cursor, chain, seq)
    cursor.execute(
        "UPDATE audit_audithead h SET seq = e.seq, entry_hash = e.entry_hash FROM audit_auditentry e"
        " WHERE h.chain = e.chain AND e.chain = %s AND e.seq = %s",
        [chain, seq],
    )


def test_checkpoint_names_the_head(tenant: Any) -> None:
    make_entries(tenant, 3)
    write_checkpoints()
    assert [(row.seq, row.count) for row in _checkpoints(tenant)] == [(3, 3)]


def test_checkpoint_is_signed_with_the_platforms_key(tenant: Any) -> None:
    make_entries(tenant, 1)
    write_checkpoints()
    assert all(is_signed(row, public_keys()) for row in _checkpoints(tenant))


def test_trusted_worker_signs_once_a_minute(tenant: Any) -> None:
    make_entries(tenant, 2)
    stand(Kind.CHECKPOINT, "checkpoints")
    assert [row.seq for row in _checkpoints(tenant)] == [2]
    with tenant_scope(INSTALLATION):
        message = QueueMessage.objects.get(kind=Kind.CHECKPOINT)
    assert message.state == "queued"
    assert now() < message.available_at <= now() + CHECKPOINTS_EVERY


def test_chain_that_did_not_move_is_not_opened(tenant: Any, other_tenant: Any) -> None:
    for each in (tenant, other_tenant):
        make_entries(each, 1)
    write_checkpoints()
    make_entries(other_tenant, 1)
    moved = {chain.id for chain in moved_chains(checkpoint_file.read_newest())}
    assert other_tenant.pk in moved
    assert tenant.pk not in moved


def test_chain_in_trouble_keeps_no_other_from_its_checkpoint(
    tenant: Any, other_tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken one comes first: chains are in the order of their names."""
    first, second = sorted((tenant, other_tenant), key=lambda each: each.slug)
    for each in (first, second):
        make_entries(each, 1)
    whole = checkpoints._verify_since

    def broken(chain: Chain, *args: Any) -> Any:
        if chain.id == first.pk:
            raise ValueError
        return whole(chain, *args)

    monkeypatch.setattr(checkpoints, "_verify_since", broken)
    write_checkpoints()
    assert [row.seq for row in _checkpoints(second)] == [1]
    assert _checkpoints(first) == ()


def test_lost_copy_outside_is_made_again(tenant: Any, settings: Any, tmp_path: Path) -> None:
    make_entries(tenant, 2)
    write_checkpoint(_chain(tenant))
    settings.CHECKPOINTS_FILE = str(tmp_path / "checkpoints.jsonl")
    write_checkpoints()
    assert checkpoint_file.read_newest()[str(tenant.pk)].seq == 2
    assert len(_checkpoints(tenant)) == 1


def test_checkpoint_of_unmoved_head_is_not_repeated(tenant: Any) -> None:
    make_entries(tenant, 1)
    write_checkpoints()
    write_checkpoints()
    assert len(_checkpoints(tenant)) == 1


def test_checkpoint_of_empty_chain_is_not_written(tenant: Any) -> None:
    assert not write_checkpoint(_chain(tenant))


def test_checkpoint_without_signing_key_is_not_written(tenant: Any, settings: Any) -> None:
    make_entries(tenant, 1)
    settings.SILAS_SIGNING_KEY = ""
    assert write_checkpoints() == 0


def test_checkpoint_by_rivals_is_written_once(tenant: Any) -> None:
    make_entries(tenant, 50)
    race(*[lambda: write_checkpoint(_chain(tenant))] * 8)
    assert len(_checkpoints(tenant)) == 1


def test_checkpoint_of_broken_chain_is_not_written(tenant: Any, superuser_dsn: str) -> None:
    make_entries(tenant, 2)
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE audit_auditentry SET actor = 'x' WHERE chain = %s AND seq = 1", [tenant.pk])
    assert not write_checkpoint(_chain(tenant))


def test_checkpoint_of_platform_chain_is_not_written_for_its_own_trace(database: None) -> None:
    platform = find_chain(PLATFORM_NAME)
    assert platform
    with platform_scope("test"):
        pass
    write_checkpoint(platform)
    assert not write_checkpoint(platform)


def test_key_after_new_signing_key_is_new_and_the_old_stays(tenant: Any, settings: Any) -> None:
    make_entries(tenant, 1)
    write_checkpoint(_chain(tenant))
    settings.SILAS_SIGNING_KEY = "another"
    make_entries(tenant, 1)
    write_checkpoint(_chain(tenant))
    assert len({row.key_id for row in _checkpoints(tenant)}) == 2
    assert verdict("--tenant", tenant.slug).startswith("ok ")


def test_key_private_half_does_not_open_without_the_signing_key(tenant: Any) -> None:
    make_entries(tenant, 1)
    write_checkpoint(_chain(tenant))
    row = AuditKey.objects.order_by("created_at").first()
    assert row
    with pytest.raises(SilasError):
        unseal("another", bytes(row.sealed_private), belongs_to=f"audit:{row.key_id}")


@pytest.mark.parametrize("cut", [_cut, _cut_with_head], ids=["entries", "entries_and_head"])
def test_cut_tail_is_found(tenant: Any, superuser_dsn: str, cut: Any) -> None:
    make_entries(tenant, 5)
    write_checkpoint(_chain(tenant))
    with tampering(superuser_dsn) as cursor:
        cut(cursor, tenant.pk, 3)
    assert verdict("--tenant", tenant.slug) == f"broken tenant={tenant.slug} seq=4 reason=tail exit=1"


def test_whole_chain_gone_is_found(tenant: Any, superuser_dsn: str) -> None:
    make_entries(tenant, 2)
    write_checkpoint(_chain(tenant))
    with tampering(superuser_dsn) as cursor:
        cursor.execute("DELETE FROM audit_auditentry WHERE chain = %s", [tenant.pk])
        cursor.execute("DELETE FROM audit_audithead WHERE chain = %s", [tenant.pk])
    assert verdict("--tenant", tenant.slug) == f"broken tenant={tenant.slug} seq=1 reason=tail exit=1"


def test_cut_and_regrown_chain_is_found_by_the_checkpoint(tenant: Any, superuser_dsn: str) -> None:
    make_entries(tenant, 3)
    write_checkpoint(_chain(tenant))
    with tampering(superuser_dsn) as cursor:
        _cut_with_head(cursor, tenant.pk, 1)
    make_entries(tenant, 4)
    assert verdict("--tenant", tenant.slug) == f"broken tenant={tenant.slug} seq=3 reason=checkpoint exit=1"


@pytest.mark.parametrize(
    "change",
    [
        "seq = seq - 1",
        "entry_hash = repeat('0', 64)",
        "created_at = created_at + interval '1 us'",
        "created_at = 'infinity'",
    ],
)
def test_forged_checkpoint_is_found(tenant: Any, superuser_dsn: str, change: str) -> None:
    make_entries(tenant, 3)
    write_checkpoint(_chain(tenant))
    with tampering(superuser_dsn) as cursor:
        cursor.execute(f"UPDATE audit_auditcheckpoint SET {change} WHERE chain = %s", [tenant.pk])
        said = verdict("--tenant", tenant.slug)
        cursor.execute("DELETE FROM audit_auditcheckpoint WHERE chain = %s", [tenant.pk])
    assert said.endswith("reason=signature exit=1")


def test_key_of_someone_else_is_refused_when_the_right_one_is_named(tenant: Any, tmp_path: Path) -> None:
    make_entries(tenant, 2)
    bundle = export(tenant, tmp_path / "bundle")
    assert stranger_verdict(str(bundle), "--key", "00" * 32) == (
        f"broken tenant={tenant.slug} seq=2 reason=signature exit=1"
    )
