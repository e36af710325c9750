"""What was certified once and ended since is not put back by a superuser of the database, for a fresh worker either."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from apps.access.models import AccessLevel
from apps.approvals import queries
from apps.approvals.enums import Reason
from apps.approvals.keys.services import rotate_key
from apps.approvals.tokens import payloads
from apps.approvals.tokens.services import revoke_token, verify_token
from apps.audit.checkpoint_file import read_newest
from apps.gates.services import retire, save_gate
from apps.sessions import policy
from apps.skills import installation, integrity
from apps.skills import queries as skills
from apps.tenants import policy_pins, policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import PolicySeal, Tenant
from apps.tenants.services import create_tenant
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from silas_platform.certification import certify_all
from tests.approvals.test_tokens import check, verify
from tests.factories.approvals import make_plan, make_token
from tests.factories.audit import tampering
from tests.factories.skills import answer, make_folder, propose
from tests.platform.test_policy_seals import blocks, spec

PutBack = Any


@pytest.fixture
def file(tmp_path: Path, settings: Any) -> Path:
    """The checkpoints of this test alone; set before a tenant is made."""
    settings.CHECKPOINTS_FILE = str(tmp_path / "kept.jsonl")
    return tmp_path / "kept.jsonl"


@pytest.fixture(autouse=True)
def _own_file(file: Path) -> None:
    """Every test of this module."""


def forget(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """From here on this is a worker that has just started: it holds no signing key and knows what the file says. The
    pins are older than a reader may be overtaken by."""
    monkeypatch.setattr(policy_pins, "_pins", {})
    monkeypatch.setattr(policy_pins, "_unread", policy_pins.defaultdict(list))
    monkeypatch.setattr(policy_pins, "_place", policy_pins._Place("", 0, 0))
    monkeypatch.setattr(policy_pins, "OVERTAKEN_SECONDS", -1.0)
    monkeypatch.setattr(integrity, "_proven", set())
    settings.SILAS_SIGNING_KEY = ""


@pytest.fixture
def fresh_worker(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    return lambda: forget(monkeypatch, settings)


class Undone(Exception):
    """Takes a change back."""


class Copy:
    """All rows of some tables of one tenant as they once were, and a superuser who puts them back."""

    def __init__(self, dsn: str, tenant: Any, *tables: str) -> None:
        self._dsn, self._tenant, self._rows = dsn, tenant, dict[str, list[str]]()
        with tampering(dsn) as cursor:
            for table in ("tenants_policyseal", *tables):
                cursor.execute(f"SELECT to_jsonb(t)::text FROM {table} t WHERE tenant_id = %s", [tenant.pk])
                self._rows[table] = [row for (row,) in cursor.fetchall()]

    def put_back(self) -> None:
        with tampering(self._dsn) as cursor:
            for table, rows in self._rows.items():
                cursor.execute(f"DELETE FROM {table} WHERE tenant_id = %s", [self._tenant.pk])
                for row in rows:
                    cursor.execute(f"INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, %s)", [row])


@pytest.fixture
def copy(superuser_dsn: str, tenant: Any) -> Any:
    return lambda *tables: Copy(superuser_dsn, tenant, *tables)


# --- gates and levels


def test_earlier_gate_put_back_with_its_list_is_not_believed_by_a_fresh_worker(
    tenant: Any, deployment: Any, copy: PutBack, fresh_worker: Any
) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    before = copy("gates_gate", "gates_gateversion")
    with tenant_scope(tenant):
        save_gate(spec("guard", "never-said"), deployment_id=deployment.pk)
    before.put_back()
    fresh_worker()
    assert blocks(tenant, deployment)


def test_fresh_worker_believes_what_is_in_force(tenant: Any, deployment: Any, fresh_worker: Any) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", "never-said"), deployment_id=deployment.pk)
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_level_that_was_narrowed_is_not_wide_again(
    tenant: Any, deployment: Any, copy: PutBack, fresh_worker: Any
) -> None:
    with tenant_scope(tenant):
        level = AccessLevel.objects.create(deployment=deployment, name="known", order=1, tools=["pay"], requires=["x"])
    before = copy("silas_sessions_accesslevel")
    with tenant_scope(tenant):
        level.tools = []
        level.save()
    before.put_back()
    fresh_worker()
    with tenant_scope(tenant):
        assert "known" not in policy.load(deployment).levels


def test_another_list_of_the_same_version_is_not_believed(
    tenant: Any, deployment: Any, tamper: Any, fresh_worker: Any
) -> None:
    with suppress(Undone), tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
        never = PolicySeal.objects.get(kind=PolicyKind.GATES)
        raise Undone
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
        assert PolicySeal.objects.get(kind=PolicyKind.GATES).version == never.version
    tamper(
        "UPDATE tenants_policyseal SET items = %s, signature = %s WHERE id = %s",
        [never.items, never.signature, never.pk],
    )
    fresh_worker()
    with tenant_scope(tenant):
        assert policy_seals.load_items(PolicyKind.GATES) is None


# --- what was taken back


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def token(tenant: Any, owner: Any, plan: dict[str, Any]) -> Any:
    return make_token(tenant, owner, plan)


REVOCATION = ("approvals_tokenrevocation",)


def test_approval_that_was_taken_back_is_not_given_again(
    tenant: Any, owner: Any, token: Any, plan: Any, copy: PutBack, fresh_worker: Any
) -> None:
    before = copy(*REVOCATION)
    with tenant_scope(tenant):
        revoke_token(token, user=owner, reason="wrong customer")
    before.put_back()
    fresh_worker()
    # The whole list is an old one, so no key is known to be good.
    assert verify(tenant, token, plan) is Reason.KEY_REVOKED


def test_row_of_a_revocation_that_was_deleted_alone_takes_nothing_back(
    tenant: Any, owner: Any, token: Any, plan: Any, tamper: Any
) -> None:
    with tenant_scope(tenant):
        verify_token(token, payloads.approvable_plan(plan))
        revoke_token(token, user=owner, reason="wrong customer")
    tamper("DELETE FROM approvals_tokenrevocation WHERE tenant_id = %s", [tenant.pk])
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.TOKEN_REVOKED
    with tenant_scope(tenant):
        assert queries.is_revoked(token.nonce)


def test_key_that_was_declared_void_stays_void(tenant: Any, owner: Any, token: Any, plan: Any, tamper: Any) -> None:
    with tenant_scope(tenant):
        rotate_key(owner, actor="user:test", compromised=True)
    tamper("UPDATE approvals_approverkey SET revoked_at = NULL WHERE tenant_id = %s", [tenant.pk])
    assert verify(tenant, token, plan) is Reason.KEY_REVOKED
    with tenant_scope(tenant):
        assert queries.is_revoked(token.nonce)
        assert queries.public_key(token.key_id, user_id=owner.pk) is None


def test_without_its_list_of_revocations_nothing_that_was_approved_holds(
    tenant: Any, token: Any, plan: Any, tamper: Any
) -> None:
    tamper("DELETE FROM tenants_policyseal WHERE kind = 'revocations' AND tenant_id = %s", [tenant.pk])
    assert verify(tenant, token, plan) is Reason.KEY_REVOKED
    with tenant_scope(tenant):
        assert queries.is_revoked(token.nonce)


# --- skills


SKILLS = ("skills_skillversion",)


@pytest.fixture
def first(tenant: Any, approver: Any, tmp_path: Path) -> Any:
    version = propose(tenant, make_folder(tmp_path))
    answer(tenant, version, approver)
    return version


def in_use(tenant: Any) -> list[int]:
    with tenant_scope(tenant):
        return [version.number for version in skills.versions_in_use(["test-desk"])]


def test_skill_that_was_switched_off_is_not_in_use_again(
    tenant: Any, first: Any, copy: PutBack, fresh_worker: Any
) -> None:
    assert in_use(tenant) == [1]
    before = copy(*SKILLS)
    with tenant_scope(tenant):
        installation.disable("test-desk")
    before.put_back()
    fresh_worker()
    assert in_use(tenant) == []


def test_skill_that_was_switched_off_is_not_switched_on_by_its_row_alone(tenant: Any, first: Any, tamper: Any) -> None:
    with tenant_scope(tenant):
        installation.disable("test-desk")
    tamper("UPDATE skills_skillversion SET status = 'active' WHERE id = %s", [first.pk])
    assert in_use(tenant) == []


def test_replaced_version_does_not_take_its_place_again(
    tenant: Any, first: Any, approver: Any, tmp_path: Path, tamper: Any
) -> None:
    (tmp_path / "second").mkdir()
    second = propose(tenant, make_folder(tmp_path / "second", description="Use when a test wants something newer."))
    answer(tenant, second, approver)
    assert in_use(tenant) == [2]
    tamper("UPDATE skills_skillversion SET activated_at = now() WHERE id = %s", [first.pk])
    assert in_use(tenant) == [2]


def test_skill_that_was_rolled_back_to_is_in_use(tenant: Any, first: Any, fresh_worker: Any) -> None:
    with tenant_scope(tenant):
        installation.disable("test-desk")
        installation.roll_back("test-desk", to=first)
    fresh_worker()
    assert in_use(tenant) == [1]


# --- the file


@pytest.mark.parametrize("harm", ["missing", "unreadable", "emptied", "junk"])
def test_fresh_worker_without_the_file_believes_no_policy(
    tenant: Any, deployment: Any, file: Path, fresh_worker: Any, caplog: Any, harm: str
) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    match harm:
        case "missing":
            file.unlink()
        case "unreadable":
            file.unlink()
            file.mkdir()
        case "emptied":
            file.write_text("")
        case "junk":
            file.write_text("\n".join(line.replace('"version"', '"v"')[:-9] for line in file.read_text().splitlines()))
    fresh_worker()
    assert blocks(tenant, deployment)
    assert "problem=unpinned" in caplog.text


def test_pin_that_no_installation_key_certified_is_left_out(
    tenant: Any, deployment: Any, file: Path, fresh_worker: Any
) -> None:
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    row = json.loads(file.read_text().splitlines()[-1])
    with file.open("a") as more:
        more.write(json.dumps({**row, "policy": {"gates": [99, "0" * 64]}}) + "\n")
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_copy_of_the_file_that_is_behind_still_serves(
    tenant: Any, deployment: Any, file: Path, fresh_worker: Any
) -> None:
    behind = file.read_text()
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    file.write_text(behind)
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_change_that_is_rolled_back_is_not_pinned(tenant: Any, deployment: Any, fresh_worker: Any) -> None:
    with suppress(Undone), tenant_scope(tenant):
        save_gate(spec("guard", "never-said"), deployment_id=deployment.pk)
        raise Undone
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_reader_that_was_overtaken_for_a_moment_believes_the_list_it_read(
    tenant: Any, deployment: Any, copy: PutBack
) -> None:
    before = copy("gates_gate", "gates_gateversion")
    with tenant_scope(tenant):
        save_gate(spec("guard", "never-said"), deployment_id=deployment.pk)
    before.put_back()
    assert not blocks(tenant, deployment)


def test_tenant_is_not_created_where_its_policy_cannot_be_pinned(database: None, file: Path) -> None:
    file.mkdir()
    with pytest.raises(SilasError) as refused:
        create_tenant("never-pinned", name="Never", owner_email="never@example.test")
    assert refused.value.code == "policy_pin_failed"
    assert not Tenant.objects.filter(slug="never-pinned").exists()


def test_pin_that_could_not_be_written_is_made_up_for_by_the_next_reader_that_may_sign(
    tenant: Any, deployment: Any, file: Path
) -> None:
    kept = file.read_text()
    file.unlink()
    file.mkdir()
    with tenant_scope(tenant):
        save_gate(spec("guard", "."), deployment_id=deployment.pk)
    file.rmdir()
    file.write_text(kept)
    blocks(tenant, deployment)
    assert '"gates":[2,' in file.read_text()


def test_certify_pins_what_a_restored_database_holds(
    tenant: Any, deployment: Any, copy: PutBack, fresh_worker: Any, settings: Any
) -> None:
    key = settings.SILAS_SIGNING_KEY
    with tenant_scope(tenant):
        gate = save_gate(spec("guard", "."), deployment_id=deployment.pk)
    before = copy("gates_gate", "gates_gateversion")
    with tenant_scope(tenant):
        retire(gate.pk)
    before.put_back()
    fresh_worker()
    assert blocks(tenant, deployment)
    settings.SILAS_SIGNING_KEY = key
    done = {one.tenant: one.counts for one in certify_all(actor="command:certify", slug=tenant.slug)}
    assert done[tenant.slug]["gates"] == 1
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_certify_pins_again_what_a_lost_file_held(
    tenant: Any, deployment: Any, file: Path, fresh_worker: Any, settings: Any
) -> None:
    key = settings.SILAS_SIGNING_KEY
    file.unlink()
    fresh_worker()
    assert blocks(tenant, deployment)
    settings.SILAS_SIGNING_KEY = key
    list(certify_all(actor="command:certify", slug=tenant.slug))
    fresh_worker()
    assert not blocks(tenant, deployment)


def test_pins_are_no_checkpoints(tenant: Any, file: Path) -> None:
    assert str(tenant.pk) in file.read_text()
    assert str(tenant.pk) not in read_newest()
