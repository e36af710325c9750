"""An approver's key is replaced by another certified one; what it signed holds until it is void."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError

from apps.approvals import rules
from apps.approvals.enums import Reason
from apps.approvals.keys import signing
from apps.approvals.keys.services import Resealed, reseal_keys, revoke_key, rotate_key
from apps.approvals.models import ApprovalToken, ApproverKey
from apps.approvals.schemas import to_base64
from apps.approvals.tokens import payloads
from apps.approvals.tokens.schemas import SignedToken, TokenClaims
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import check, verify
from tests.factories.approvals import make_plan, make_token
from tests.rivals import race


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def token(tenant: Any, owner: Any, plan: dict[str, Any]) -> ApprovalToken:
    return make_token(tenant, owner, plan)


def rotate(tenant: Any, user: Any, **how: bool) -> ApproverKey:
    with tenant_scope(tenant):
        return rotate_key(user, actor="user:test", **how)


def tamper(dsn: str, statement: str, *values: object) -> None:
    with psycopg.connect(dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute(statement, values)


def test_token_of_rotated_key_still_verifies(tenant: Any, owner: Any, token: ApprovalToken, plan: Any) -> None:
    rotate(tenant, owner)
    assert verify(tenant, token, plan) is Reason.OK


def test_token_of_rotated_key_still_checks(tenant: Any, owner: Any, token: ApprovalToken, plan: Any) -> None:
    verify(tenant, token, plan)
    rotate(tenant, owner)
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.OK


def test_next_token_carries_the_new_key(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    new = rotate(tenant, owner)
    assert make_token(tenant, owner, make_plan()).key_id == new.key_id != token.key_id


def test_token_of_twice_rotated_key_verifies(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner)
    rotate(tenant, owner)
    plan = make_plan()
    assert verify(tenant, make_token(tenant, owner, plan), plan) is Reason.OK


def test_retired_key_cannot_sign(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner)
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        signing.sign(ApproverKey.objects.get(key_id=token.key_id), b"anything")
    assert refused.value.code == "key_retired"


def test_retired_key_has_no_private_half(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner)
    with tenant_scope(tenant):
        assert bytes(ApproverKey.objects.get(key_id=token.key_id).sealed_private) == b""


def test_token_of_compromised_key_is_refused_at_once(tenant: Any, owner: Any, token: ApprovalToken, plan: Any) -> None:
    verify(tenant, token, plan)
    rotate(tenant, owner, compromised=True)
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.KEY_REVOKED


def test_token_of_compromised_key_cannot_be_spent(tenant: Any, owner: Any, token: ApprovalToken, plan: Any) -> None:
    rotate(tenant, owner, compromised=True)
    assert verify(tenant, token, plan) is Reason.KEY_REVOKED


def test_key_that_follows_a_compromised_one_signs(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner, compromised=True)
    plan = make_plan()
    assert verify(tenant, make_token(tenant, owner, plan), plan) is Reason.OK


def test_active_key_cannot_be_declared_void(tenant: Any, token: ApprovalToken) -> None:
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        revoke_key(token.key_id, actor="user:test")
    assert refused.value.code == "key_active"


def test_what_a_retired_key_claims_to_have_signed_later_is_refused(
    tenant: Any, owner: Any, token: ApprovalToken, plan: Any, superuser_dsn: str
) -> None:
    """The private half got out before the rotation: what is signed after it carries a later time, or an expired one."""
    with tenant_scope(tenant):
        old = ApproverKey.objects.get(key_id=token.key_id)
        thief = signing._private(old)
    rotate(tenant, owner)
    signed = SignedToken.of_row(token)
    values = {name: getattr(signed, name) for name in TokenClaims.model_fields}
    claims = TokenClaims(**{**values, "issued_at": now(), "expires_at": now() + timedelta(hours=1)})
    forged = ApprovalToken(pk=token.pk, tenant_id=token.tenant_id, key_id=token.key_id, **claims.model_dump())
    forged.signature = to_base64(thief.sign(rules.signed_bytes(claims)))
    assert verify(tenant, forged, plan) is Reason.KEY_RETIRED


def test_two_rotations_at_once_leave_one_active_key(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    race(*[lambda: rotate(tenant, owner) for _ in range(3)])
    with tenant_scope(tenant):
        assert ApproverKey.objects.filter(user=owner, retired_at=None).count() == 1


def test_rotation_and_decision_at_once_leave_no_token_that_does_not_hold(tenant: Any, owner: Any, token: Any) -> None:
    plan = make_plan()
    made, _ = race(lambda: make_token(tenant, owner, plan), lambda: rotate(tenant, owner))
    assert isinstance(made, ApprovalToken)
    assert verify(tenant, made, plan) is Reason.OK


# --- somebody who can only write rows


def intruder(tenant: Any, user: Any, **fields: Any) -> ApproverKey:
    public = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    values = {"public_key": public.hex(), "key_id": sha256_hex(public)[:16], "sealed_private": b"x"}
    return ApproverKey(tenant_id=tenant.pk, user=user, created_at=now(), **{**values, **fields})


def test_second_first_key_of_a_member_is_refused(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner)
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        intruder(tenant, owner, retired_at=now()).save(force_insert=True)


@pytest.mark.parametrize("certificate", ["", "AAAA", "not base64"])
def test_key_that_nobody_certified_signs_nothing(tenant: Any, owner: Any, token: Any, certificate: str) -> None:
    with tenant_scope(tenant):
        old = ApproverKey.objects.get(key_id=token.key_id)
        old.retired_at, old.sealed_private = now(), b""
        old.save(update_fields=["retired_at", "sealed_private"])
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes_raw()
        mine = {"public_key": public.hex(), "key_id": sha256_hex(public)[:16], "sealed_private": b"x"}
        intruder(tenant, owner, previous=old, certificate=certificate, **mine).save(force_insert=True)
    plan, signed = make_plan(), SignedToken.of_row(token)
    subject = payloads.approvable_plan(plan)
    values = {name: getattr(signed, name) for name in TokenClaims.model_fields}
    claims = TokenClaims(**{**values, "plan_hash": subject.plan_hash, "work_item_id": subject.id})
    forged = ApprovalToken(pk=token.pk, tenant_id=tenant.pk, key_id=mine["key_id"], **claims.model_dump())
    forged.signature = to_base64(private.sign(rules.signed_bytes(claims)))
    assert verify(tenant, forged, plan) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    "change",
    [
        "public_key = repeat('0', 64)",
        "sealed_private = ''",
        "retired_at = now()",
        "created_at = now()",
        "user_id = gen_random_uuid()",
        "revoked_at = now()",
    ],
)
def test_key_row_cannot_be_changed_but_by_ending_it(tenant: Any, token: ApprovalToken, change: str) -> None:
    from django.db import connection

    with pytest.raises(DatabaseError), tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(f"UPDATE approvals_approverkey SET {change} WHERE key_id = %s", [token.key_id])


def test_retired_key_cannot_come_back(tenant: Any, owner: Any, token: ApprovalToken) -> None:
    rotate(tenant, owner)
    with pytest.raises(DatabaseError), tenant_scope(tenant):
        ApproverKey.objects.filter(key_id=token.key_id).update(retired_at=None)


# --- the platform's own key

OTHER = "another-signing-key-of-the-platform"


def reseal(tenant: Any, old: str, new: str) -> Resealed:
    with tenant_scope(tenant):
        return reseal_keys(old=old, new=new, actor="user:test")


def test_resealed_key_signs_under_the_new_signing_key(tenant: Any, owner: Any, token: Any, settings: Any) -> None:
    reseal(tenant, settings.SILAS_SIGNING_KEY, OTHER)
    settings.SILAS_SIGNING_KEY = OTHER
    plan = make_plan()
    made = make_token(tenant, owner, plan)
    assert made.key_id == token.key_id
    assert verify(tenant, made, plan) == Reason.OK


def test_resealed_key_is_shut_to_the_old_signing_key(tenant: Any, owner: Any, token: Any, settings: Any) -> None:
    settings.SILAS_ROOT_KEYS = (*settings.SILAS_ROOT_KEYS, trust.root_of(OTHER))
    reseal(tenant, settings.SILAS_SIGNING_KEY, OTHER)
    with pytest.raises(SilasError, match="sealed"):
        make_token(tenant, owner, make_plan())


def test_reseal_again_changes_nothing(tenant: Any, token: Any, settings: Any) -> None:
    reseal(tenant, settings.SILAS_SIGNING_KEY, OTHER)
    assert reseal(tenant, settings.SILAS_SIGNING_KEY, OTHER) == Resealed(0, ())


def test_reseal_with_a_wrong_old_key_names_the_keys_and_leaves_them(tenant: Any, owner: Any, token: Any) -> None:
    assert reseal(tenant, "a-wrong-key", OTHER).unopened == (token.key_id,)
    assert make_token(tenant, owner, make_plan()).key_id == token.key_id


def test_reseal_leaves_retired_keys_alone(tenant: Any, owner: Any, token: Any, settings: Any) -> None:
    rotate(tenant, owner)
    assert reseal(tenant, settings.SILAS_SIGNING_KEY, OTHER).resealed == 1


@pytest.mark.parametrize("old", ["", "test-signing-key"])
def test_reseal_command_without_two_keys_is_refused(database: None, settings: Any, old: str) -> None:
    settings.SILAS_SIGNING_KEY_OLD = old
    with pytest.raises(CommandError, match="SILAS_SIGNING_KEY_OLD"):
        call_command("reseal_keys")


def test_rotate_key_command_names_the_new_key(tenant: Any, owner: Any, token: Any) -> None:
    said = StringIO()
    call_command("rotate_key", tenant=tenant.slug, user=owner.email, compromised=False, stdout=said)
    with tenant_scope(tenant):
        assert ApproverKey.objects.get(user=owner, retired_at=None).key_id in said.getvalue()


def test_rotate_key_command_refuses_a_stranger(tenant: Any, stranger: Any) -> None:
    with pytest.raises(CommandError, match="not a member"):
        call_command("rotate_key", tenant=tenant.slug, user=stranger.email, compromised=False)
