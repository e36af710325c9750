"""Programs decide cards with signatures of their own, and only within what a member gave them (ADR 124)."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import DatabaseError
from django.test import Client

from apps.approvals import queries
from apps.approvals.cards import answers
from apps.approvals.enums import ApprovalScope, CardStatus, PasskeyRule, Risk
from apps.approvals.keys import client_keys
from apps.approvals.models import Answer, ApprovalPolicy, ApprovalToken, Card, ClientKey
from apps.audit.models import AuditEntry
from apps.tenants.enums import KeyScope
from apps.tenants.models import Membership
from apps.tenants.services import create_api_key, revoke_api_key
from kernel.canonical import canonical_bytes
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card
from tests.factories.tenants import make_member, make_tenant
from tests.rivals import race


class Program:
    """A program with an API key and a signing key that decides on behalf of `user`."""

    def __init__(
        self, tenant: Any, user: Any, *, max_risk: Risk = Risk.MEDIUM, scopes: Any = tuple(ApprovalScope)
    ) -> None:
        self.tenant, self.user, self.private = tenant, user, Ed25519PrivateKey.generate()
        with tenant_scope(tenant):
            made = create_api_key("Program", scopes=(KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE))
            public = self.private.public_key().public_bytes_raw().hex()
            self.row = client_keys.register(user, made.row, public_key=public, scopes=scopes, max_risk=max_risk)
        self.api_key, self.key = made.row, made.key

    def read(self, card: Card) -> Any:
        answer = Client().get(f"/api/v1/cards/{card.pk}", headers={"authorization": f"Bearer {self.key}"})
        assert answer.status_code == 200, answer.content
        return answer.json()

    def body(self, card: Card, choice: str = "approve", **changed: Any) -> dict[str, Any]:
        """The request as documented: everything that is signed comes from what the API said about the card."""
        shown = self.read(card)
        verdict = next(each["verdict"] for each in shown["choices"] if each["value"] == choice)
        at = changed.pop("at", datetime.now(UTC)).isoformat().replace("+00:00", "Z")
        claims = {
            "card_id": shown["id"],
            "payload_hash": shown["payload_hash"],
            "face": shown["face_hash"],
            "user_id": str(self.user.pk),
            "verdict": verdict,
            "approval_strength": "tap",
            "conditions": {},
            "said": {"choice": choice},
            "answered_at": at,
            "step_up": "",
        } | changed.pop("claims", {})
        signature = base64.b64encode(self.private.sign(canonical_bytes(claims))).decode()
        body = {"choice": choice, "face_hash": shown["face_hash"], "answered_at": at, "key_id": self.row.key_id}
        return {**body, "signature": signature, **changed}

    def send(self, card: Card, body: dict[str, Any], *, key: str = "") -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {key or self.key}"}
        path = f"/api/v1/cards/{card.pk}/decision"
        answer = Client().post(path, json.dumps(body), "application/json", headers=headers)
        return answer.status_code, answer.json()

    def refusal(self, card: Card, body: dict[str, Any], **more: Any) -> tuple[int, str]:
        status, said = self.send(card, body, **more)
        return status, said["error"]["code"]

    def decide(self, card: Card, choice: str = "approve", **changed: Any) -> tuple[int, Any]:
        return self.send(card, self.body(card, choice, **changed))


@pytest.fixture
def program(tenant: Any, approver: Any) -> Program:
    return Program(tenant, approver)


@pytest.fixture
def card(tenant: Any) -> Card:
    return open_card(tenant)


def state(card: Card) -> str:
    with tenant_scope(card.tenant):
        return str(queries.get_card(card.pk).status)


def is_untouched(card: Card) -> bool:
    with tenant_scope(card.tenant):
        return queries.get_card(card.pk).is_open and not Answer.objects.filter(card=card).exists()


def test_signed_approval_decides_and_its_token_names_it(program: Program, card: Card, approver: Any) -> None:
    status, said = program.decide(card)
    assert status == 200
    assert said == {"outcome": "decided", "card_id": str(card.pk), "state": "decided"}
    with tenant_scope(card.tenant):
        answer, token = Answer.objects.get(card=card), ApprovalToken.objects.get(decision__card=card)
        assert answer.user == approver
        assert answer.key_id == program.row.key_id
        assert answers.verify_answer(answer)
        assert len(token.conditions["answers"]) == 1
        entry = AuditEntry.objects.get(event="card_decided", subject=f"card:{card.pk}")
        assert entry.actor == f"user:{approver.pk}"
        assert json.loads(entry.data)["client_key"] == program.row.key_id


def test_decline_is_signed_too_and_issues_nothing(program: Program, card: Card) -> None:
    assert program.decide(card, "decline")[1]["state"] == "decided"
    with tenant_scope(card.tenant):
        assert not ApprovalToken.objects.filter(decision__card=card).exists()


@pytest.mark.parametrize(
    "claims",
    [
        {"verdict": "declined"},
        {"payload_hash": "0" * 64},
        {"face": "0" * 64},
        {"said": {"choice": "decline"}},
        {"user_id": "00000000-0000-0000-0000-000000000000"},
        {"answered_at": "2020-01-01T00:00:00Z"},
    ],
)
def test_signature_of_anything_else_decides_nothing(program: Program, card: Card, claims: dict[str, Any]) -> None:
    assert program.refusal(card, program.body(card, claims=claims)) == (403, "signature_invalid")
    assert is_untouched(card)


def test_other_words_than_the_signed_ones_decide_nothing(program: Program, card: Card) -> None:
    approval = program.body(card)
    for changed in ({"choice": "decline"}, {"key_id": "0" * 16}, {"signature": "AAAA"}, {"signature": "no base64"}):
        assert program.refusal(card, approval | changed) == (403, "signature_invalid")
    assert is_untouched(card)


def test_signature_for_one_card_decides_no_other(program: Program, card: Card, tenant: Any) -> None:
    other = open_card(tenant)
    body = program.body(card) | {"face_hash": program.read(other)["face_hash"]}
    assert program.refusal(other, body) == (403, "signature_invalid")
    assert is_untouched(other)


def test_page_that_has_changed_decides_nothing(program: Program, card: Card) -> None:
    assert program.refusal(card, program.body(card) | {"face_hash": "0" * 64}) == (409, "card_changed")
    assert is_untouched(card)


@pytest.mark.parametrize("minutes", [-6, 6])
def test_old_and_future_signatures_are_refused(program: Program, card: Card, minutes: int) -> None:
    body = program.body(card, at=datetime.now(UTC) + timedelta(minutes=minutes))
    assert program.refusal(card, body) == (409, "signature_stale")
    assert is_untouched(card)


def test_same_request_again_changes_nothing_and_a_late_other_one_is_refused(program: Program, card: Card) -> None:
    body = program.body(card)
    assert program.send(card, body) == program.send(card, body)
    assert program.refusal(card, program.body(card, "decline")) == (409, "card_decided")
    with tenant_scope(card.tenant):
        assert Answer.objects.filter(card=card).count() == 1


def test_one_of_two_rivals_decides(program: Program, card: Card) -> None:
    bodies = [program.body(card), program.body(card, "decline")]
    outcomes = race(*[lambda body=body: program.send(card, body)[0] for body in bodies])
    assert set(outcomes) == {200, 409}


def test_key_works_only_with_its_own_api_key(program: Program, card: Card, tenant: Any, approver: Any) -> None:
    other = Program(tenant, approver)
    with tenant_scope(tenant):
        whole = create_api_key("Everything").key
    for key in (other.key, whole):
        assert program.refusal(card, program.body(card), key=key) == (403, "signature_invalid")
    assert is_untouched(card)


def test_key_without_the_scope_is_told_which(program: Program, card: Card, tenant: Any) -> None:
    with tenant_scope(tenant):
        reader = create_api_key("Reader", scopes=(KeyScope.CARDS_READ,)).key
    status, said = program.send(card, program.body(card), key=reader)
    assert status == 403
    assert said["error"]["code"] == "forbidden_scope"
    assert said["error"]["extra"]["scope"] == "cards:decide"


def test_foreign_card_is_not_found(program: Program, card: Card) -> None:
    foreign = open_card(make_tenant())
    assert program.refusal(foreign, program.body(card)) == (404, "not_found")


def test_revoked_keys_decide_nothing(program: Program, card: Card, tenant: Any) -> None:
    body = program.body(card)
    with tenant_scope(tenant):
        client_keys.revoke(program.row.key_id, actor="user:x")
    assert program.refusal(card, body) == (403, "signature_invalid")
    with tenant_scope(tenant):
        revoke_api_key(program.api_key)
    assert program.refusal(card, body)[0] == 401
    assert is_untouched(card)


def test_member_who_may_no_longer_decide_takes_the_program_along(program: Program, card: Card, tenant: Any) -> None:
    body = program.body(card)
    with tenant_scope(tenant):
        Membership.objects.filter(user=program.user).update(role="agent")
    assert program.refusal(card, body) == (403, "approver_required")


def test_rights_limit_risk_and_kind(tenant: Any, approver: Any) -> None:
    low = Program(tenant, approver, max_risk=Risk.LOW)
    other = Program(tenant, approver, scopes=[ApprovalScope.BUDGET])
    medium = open_card(tenant)
    assert medium.risk == Risk.MEDIUM
    for program in (low, other):
        assert program.refusal(medium, program.body(medium)) == (403, "client_key_rights")
    assert is_untouched(medium)


def test_high_risk_takes_a_policy_for_exactly_it(tenant: Any, approver: Any) -> None:
    program, risky = Program(tenant, approver, max_risk=Risk.IRREVERSIBLE), open_card(tenant, declared_risk=Risk.HIGH)
    assert risky.risk == Risk.HIGH
    assert program.refusal(risky, program.body(risky)) == (403, "client_key_rights")
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(risk=Risk.HIGH)
    assert program.decide(risky)[0] == 200


def test_policy_that_requires_a_passkey_excludes_programs(program: Program, card: Card, tenant: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(passkey=PasskeyRule.REQUIRED)
    assert program.refusal(card, program.body(card)) == (403, "client_key_rights")


def test_program_counts_as_its_member_and_not_as_a_second_person(program: Program, tenant: Any, approver: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    card = open_card(tenant)
    assert program.decide(card)[1]["outcome"] == "waiting"
    assert program.refusal(card, program.body(card)) == (409, "answered_already")
    again = Program(tenant, approver)
    assert again.refusal(card, again.body(card)) == (409, "answered_already")
    other = Program(tenant, make_member(tenant, "approver"))
    assert other.decide(card)[1]["outcome"] == "decided"


def test_answer_of_a_key_that_is_revoked_no_longer_counts(program: Program, tenant: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    card = open_card(tenant)
    assert program.decide(card)[1]["outcome"] == "waiting"
    with tenant_scope(tenant):
        client_keys.revoke(program.row.key_id, actor="user:x")
    other = Program(tenant, make_member(tenant, "approver"))
    assert other.decide(card)[1]["outcome"] == "waiting"
    assert state(card) == CardStatus.OPEN


def test_program_approves_nothing_that_it_asked_for(program: Program, tenant: Any) -> None:
    own = open_card(tenant, requested_by=f"api_key:{program.api_key.pk}")
    assert program.refusal(own, program.body(own)) == (403, "own_request")


def test_row_with_other_rights_is_no_valid_key(program: Program, card: Card, tenant: Any, superuser_dsn: str) -> None:
    """Someone who can write rows, even as superuser, gives a key no rights."""
    import psycopg

    with tenant_scope(tenant), pytest.raises(DatabaseError):
        ClientKey.objects.filter(pk=program.row.pk).update(max_risk=Risk.IRREVERSIBLE)
    body = program.body(card)
    with psycopg.connect(superuser_dsn) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE approvals_clientkey SET max_risk = 'irreversible' WHERE id = %s", [program.row.pk])
    assert program.refusal(card, body) == (403, "signature_invalid")


def test_revoked_key_that_is_revived_in_its_row_decides_nothing(
    program: Program, card: Card, tenant: Any, superuser_dsn: str
) -> None:
    import psycopg

    body = program.body(card)
    with tenant_scope(tenant):
        client_keys.revoke(program.row.key_id, actor="user:x")
    with psycopg.connect(superuser_dsn) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE approvals_clientkey SET revoked_at = NULL WHERE id = %s", [program.row.pk])
    assert program.refusal(card, body) == (403, "signature_invalid")


@pytest.mark.parametrize(("public", "code"), [("ab", "client_key_invalid"), ("zz" * 32, "client_key_invalid")])
def test_only_an_ed25519_key_is_registered(tenant: Any, approver: Any, public: str, code: str) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        client_keys.register(
            approver,
            create_api_key("Program").row,
            public_key=public,
            scopes=[ApprovalScope.FULL_PLAN],
            max_risk=Risk.LOW,
        )
    assert refused.value.code == code


def test_agent_registers_no_key_and_no_key_is_registered_twice(program: Program, tenant: Any, agent: Any) -> None:
    public = program.row.public_key
    for user, code in ((agent, "approver_required"), (program.user, "client_key_known")):
        with tenant_scope(tenant), pytest.raises(SilasError) as refused:
            client_keys.register(
                user, program.api_key, public_key=public, scopes=[ApprovalScope.BUDGET], max_risk=Risk.LOW
            )
        assert refused.value.code == code
