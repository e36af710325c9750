"""A superuser of the database without the signing key: no key and no approval that they write is believed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from apps.approvals import queries, rules
from apps.approvals.enums import Reason
from apps.approvals.keys.services import reseal_keys
from apps.approvals.models import ApprovalToken, ApproverKey
from apps.approvals.schemas import to_base64
from apps.approvals.tokens import payloads
from apps.approvals.tokens.schemas import SignedToken, TokenClaims
from kernel import trust
from kernel.canonical import sha256_hex
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import check, verify
from tests.factories.approvals import make_plan, make_token
from tests.factories.audit import tampering
from tests.factories.tenants import make_member

OTHER = "another-signing-key-of-the-platform"


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def token(tenant: Any, owner: Any, plan: dict[str, Any]) -> ApprovalToken:
    return make_token(tenant, owner, plan)


def _forged_key(dsn: str, tenant: Any, user: Any, *, certificate: str = "") -> Ed25519PrivateKey:
    """A key of the attacker's in the place of the user's, written with every trigger asleep."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    with tampering(dsn) as cursor:
        cursor.execute("DELETE FROM approvals_approverkey WHERE tenant_id = %s AND user_id = %s", [tenant.pk, user.pk])
        cursor.execute(
            "INSERT INTO approvals_approverkey (id, tenant_id, user_id, key_id, public_key, sealed_private, created_at,"
            " certificate) VALUES (%s, %s, %s, %s, %s, 'x', now(), %s)",
            [uuid4(), tenant.pk, user.pk, sha256_hex(public)[:16], public.hex(), certificate],
        )
    return private


def _forged_token(dsn: str, token: ApprovalToken, private: Ed25519PrivateKey, plan: dict[str, Any]) -> ApprovalToken:
    """The genuine token's row, bound to another plan and signed with the attacker's key."""
    subject = payloads.approvable_plan(plan)
    signed = SignedToken.of_row(token)
    values = {name: getattr(signed, name) for name in TokenClaims.model_fields}
    claims = TokenClaims(**{**values, "plan_hash": subject.plan_hash, "work_item_id": subject.id})
    key_id = sha256_hex(private.public_key().public_bytes_raw())[:16]
    forged = ApprovalToken(pk=token.pk, tenant_id=token.tenant_id, key_id=key_id, **claims.model_dump())
    forged.signature = to_base64(private.sign(rules.signed_bytes(claims)))
    with tampering(dsn) as cursor:
        cursor.execute(
            "UPDATE approvals_approvaltoken SET plan_hash = %s, work_item_id = %s, signature = %s, key_id = %s"
            " WHERE id = %s",
            [forged.plan_hash, forged.work_item_id, forged.signature, key_id, token.pk],
        )
    return forged


def test_forged_approver_key_opens_nothing(tenant: Any, owner: Any, token: Any, superuser_dsn: str) -> None:
    plan = make_plan()
    private = _forged_key(superuser_dsn, tenant, owner)
    assert verify(tenant, _forged_token(superuser_dsn, token, private, plan), plan) is Reason.INVALID_SIGNATURE


def test_forged_approval_does_not_check(tenant: Any, owner: Any, token: Any, superuser_dsn: str) -> None:
    plan = make_plan()
    private = _forged_key(superuser_dsn, tenant, owner)
    forged = _forged_token(superuser_dsn, token, private, plan)
    assert check(tenant, forged, payloads.approvable_plan(plan)) is Reason.INVALID_SIGNATURE


def test_certificate_of_another_key_does_not_move(tenant: Any, owner: Any, token: Any, superuser_dsn: str) -> None:
    with tenant_scope(tenant):
        certificate = ApproverKey.objects.get(user=owner).certificate
    plan = make_plan()
    private = _forged_key(superuser_dsn, tenant, owner, certificate=certificate)
    assert verify(tenant, _forged_token(superuser_dsn, token, private, plan), plan) is Reason.INVALID_SIGNATURE


def test_certificate_of_another_installation_is_not_believed(
    tenant: Any, owner: Any, token: Any, superuser_dsn: str
) -> None:
    plan = make_plan()
    private = _forged_key(superuser_dsn, tenant, owner)
    public = private.public_key().public_bytes_raw()
    fields = {
        "tenant": str(tenant.pk),
        "user": str(owner.pk),
        "key_id": sha256_hex(public)[:16],
        "public_key": public.hex(),
    }
    certificate = trust.certify(rules.KEY_CERTIFICATE, fields, signing_key="the attacker's own")
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE approvals_approverkey SET certificate = %s WHERE user_id = %s", [certificate, owner.pk])
    assert verify(tenant, _forged_token(superuser_dsn, token, private, plan), plan) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize("column", ["user_id", "tenant_id"])
def test_genuine_key_moved_to_another_person_or_tenant_is_none(
    tenant: Any, other_tenant: Any, owner: Any, token: Any, superuser_dsn: str, column: str
) -> None:
    elsewhere = make_member(tenant, "approver").pk if column == "user_id" else other_tenant.pk
    with tampering(superuser_dsn) as cursor:
        cursor.execute(f"UPDATE approvals_approverkey SET {column} = %s WHERE user_id = %s", [elsewhere, owner.pk])
    with tenant_scope(tenant if column == "user_id" else other_tenant):
        assert queries.token_facts(token.nonce, key_id=token.key_id, bound_hash="").key is None


def test_genuine_key_is_believed_by_a_worker_that_knows_the_pinned_key_only(
    tenant: Any, token: Any, plan: Any, settings: Any
) -> None:
    settings.SILAS_ROOT_KEYS = (trust.root_of(settings.SILAS_SIGNING_KEY),)
    settings.SILAS_SIGNING_KEY = ""
    assert verify(tenant, token, plan) is Reason.OK


def test_worker_that_pins_another_key_believes_nothing(tenant: Any, token: Any, plan: Any, settings: Any) -> None:
    settings.SILAS_ROOT_KEYS = (trust.root_of(OTHER),)
    settings.SILAS_SIGNING_KEY = ""
    assert verify(tenant, token, plan) is Reason.INVALID_SIGNATURE


def test_resealing_certifies_keys_for_the_new_signing_key(tenant: Any, token: Any, plan: Any, settings: Any) -> None:
    with tenant_scope(tenant):
        reseal_keys(old=settings.SILAS_SIGNING_KEY, new=OTHER, actor="user:test")
    settings.SILAS_SIGNING_KEY = OTHER
    assert verify(tenant, token, plan) is Reason.OK


def test_resealing_certifies_no_key_that_was_only_written(
    tenant: Any, owner: Any, token: Any, settings: Any, superuser_dsn: str
) -> None:
    _forged_key(superuser_dsn, tenant, owner)
    with tenant_scope(tenant):
        reseal_keys(old=settings.SILAS_SIGNING_KEY, new=OTHER, actor="user:test")
        assert ApproverKey.objects.get(user=owner).certificate == ""
