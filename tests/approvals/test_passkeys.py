"""A passkey stands behind one answer of one person to exactly one card, once and soon; all else it says is a no."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError
from hypothesis import given
from hypothesis import strategies as st
from webauthn.helpers import bytes_to_base64url

from apps.approvals.cards import answers
from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, PasskeyRule, Risk
from apps.approvals.models import Answer, ApprovalPolicy, Card, Decision, Passkey
from apps.approvals.passkeys import services as passkeys
from apps.approvals.queries import face_hash
from apps.audit.models import AuditEntry
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card
from tests.factories.passkeys import ORIGIN, PRESENT, RP_ID, SoftPasskey
from tests.rivals import race


def register(tenant: Any, user: Any, device: SoftPasskey, name: str = "Laptop") -> Passkey:
    with tenant_scope(tenant):
        options = passkeys.begin_registration(user, rp_id=RP_ID, origin=ORIGIN)
        made = passkeys.finish_registration(user, name=name, credential=device.create(options))
    assert isinstance(made, Passkey)
    return made


def ask(tenant: Any, card: Card, user: Any, rp_id: str = RP_ID) -> dict[str, Any] | None:
    with tenant_scope(tenant):
        return passkeys.begin_step_up(card.pk, user=user, face=face_hash(card), rp_id=rp_id, origin=ORIGIN)


def approve(tenant: Any, card: Card, user: Any, step_up: str = "") -> Decision | AnswerRefused | None:
    with tenant_scope(tenant):
        return decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED, step_up=step_up)


def refusal(tenant: Any, card: Card, user: Any, step_up: str = "") -> str:
    try:
        outcome = approve(tenant, card, user, step_up)
    except SilasError as refused:
        return refused.code
    assert isinstance(outcome, AnswerRefused)
    return outcome.code


def newest(tenant: Any) -> AuditEntry:
    with tenant_scope(tenant):
        entry: AuditEntry = AuditEntry.objects.order_by("-seq")[0]
    return entry


@pytest.fixture
def grave(tenant: Any) -> Card:
    return open_card(tenant, declared_risk=Risk.HIGH)


@pytest.fixture
def device(tenant: Any, owner: Any) -> SoftPasskey:
    made = SoftPasskey()
    register(tenant, owner, made)
    return made


def test_approval_of_a_grave_card_needs_the_registered_passkey(
    tenant: Any, owner: Any, grave: Card, device: Any
) -> None:
    assert refusal(tenant, grave, owner) == "step_up_required"


def test_approval_with_the_passkey_s_answer_is_taken(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    assert isinstance(approve(tenant, grave, owner, device.get(ask(tenant, grave, owner))), Decision)


def test_person_without_a_passkey_is_not_asked(tenant: Any, approver: Any, grave: Card, device: Any) -> None:
    assert ask(tenant, grave, approver) is None
    assert approve(tenant, grave, approver) is not None


def test_card_of_medium_risk_asks_for_no_passkey(tenant: Any, owner: Any, device: Any) -> None:
    assert ask(tenant, open_card(tenant), owner) is None


def test_decline_asks_for_no_passkey(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    with tenant_scope(tenant):
        assert decide_card(grave.pk, user=owner, verdict=ApprovalVerdict.DECLINED) is not None


@pytest.fixture
def required(tenant: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(passkey=PasskeyRule.REQUIRED)


def test_policy_that_asks_for_a_passkey_refuses_whoever_has_none(tenant: Any, owner: Any, required: None) -> None:
    assert refusal(tenant, open_card(tenant), owner) == "passkey_missing"


def test_policy_that_asks_for_a_passkey_says_so_before_the_approval(tenant: Any, owner: Any, required: None) -> None:
    with pytest.raises(SilasError) as refused:
        ask(tenant, open_card(tenant), owner)
    assert refused.value.code == "passkey_missing"


def test_policy_that_asks_for_a_passkey_takes_one(tenant: Any, owner: Any, device: Any, required: None) -> None:
    card = open_card(tenant)
    assert isinstance(approve(tenant, card, owner, device.get(ask(tenant, card, owner))), Decision)


# --- what is bound


def test_answer_to_one_card_opens_no_other(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    other = open_card(tenant, declared_risk=Risk.HIGH)
    assert refusal(tenant, grave, owner, device.get(ask(tenant, other, owner))) == "passkey_refused"


def test_answer_of_one_person_serves_no_other(tenant: Any, owner: Any, approver: Any, grave: Card, device: Any) -> None:
    theirs = SoftPasskey()
    register(tenant, approver, theirs)
    assert refusal(tenant, grave, owner, theirs.get(ask(tenant, grave, approver))) == "passkey_refused"


def test_foreign_passkey_that_signs_my_challenge_is_refused(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    thief = SoftPasskey(credential_id=device.credential_id, counter=9)
    assert refusal(tenant, grave, owner, thief.get(ask(tenant, grave, owner))) == "passkey_refused"


def test_passkey_of_another_person_that_signs_my_challenge_is_refused(
    tenant: Any, owner: Any, approver: Any, grave: Card, device: Any
) -> None:
    theirs = SoftPasskey()
    register(tenant, approver, theirs)
    assert refusal(tenant, grave, owner, theirs.get(ask(tenant, grave, owner))) == "passkey_refused"


def test_answer_after_its_time_is_refused(tenant: Any, owner: Any, grave: Card, device: Any, settings: Any) -> None:
    answered = device.get(ask(tenant, grave, owner))
    with time_machine.travel(now() + timedelta(seconds=settings.PASSKEY_SECONDS), tick=False):
        assert refusal(tenant, grave, owner, answered) == "passkey_refused"


def test_answer_is_spent_once(tenant: Any, owner: Any, approver: Any, grave: Card, device: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    answered = device.get(ask(tenant, grave, owner))
    approve(tenant, grave, owner, answered)
    with tenant_scope(tenant), pytest.raises(passkeys.PasskeyRejected):
        passkeys.prove(grave, user=owner, policy=answers.queries.policy_for(grave), assertion=answered)


def test_answer_from_another_site_is_refused(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    device.origin = "http://localhost.evil.example"
    assert refusal(tenant, grave, owner, device.get(ask(tenant, grave, owner))) == "passkey_refused"


def test_answer_for_another_relying_party_is_refused(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    options = ask(tenant, grave, owner)
    assert options is not None
    assert refusal(tenant, grave, owner, device.get({**options, "rpId": "evil.example"})) == "passkey_refused"


def test_answer_without_the_person_being_verified_is_refused(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    device.flags = PRESENT
    assert refusal(tenant, grave, owner, device.get(ask(tenant, grave, owner))) == "passkey_refused"


@pytest.mark.parametrize("counter", [0, 1])
def test_counter_that_runs_backwards_is_refused(
    tenant: Any, owner: Any, grave: Card, device: Any, counter: int
) -> None:
    device.counter, device.counts = counter, False
    assert refusal(tenant, grave, owner, device.get(ask(tenant, grave, owner))) == "passkey_counter"


def test_passkey_that_never_counts_is_taken(tenant: Any, owner: Any, grave: Card) -> None:
    device = SoftPasskey(counts=False)
    register(tenant, owner, device)
    assert isinstance(approve(tenant, grave, owner, device.get(ask(tenant, grave, owner))), Decision)


def test_removed_passkey_is_refused(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    second = SoftPasskey()
    register(tenant, owner, second)
    answered = device.get(ask(tenant, grave, owner))
    with tenant_scope(tenant):
        first = Passkey.objects.get(credential_id=bytes_to_base64url(device.credential_id))
        passkeys.remove_passkey(first.pk, user=owner, actor="user:test")
    assert refusal(tenant, grave, owner, answered) == "passkey_refused"


def test_passkey_of_another_address_says_where_it_works(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    with pytest.raises(SilasError, match="localhost") as refused:
        ask(tenant, grave, owner, rp_id="console.example.test")
    assert refused.value.code == "passkey_elsewhere"


GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "response", "type"]), inner),
    max_leaves=6,
)


@given(GARBAGE)
def test_garbage_is_never_a_challenge(garbage: object) -> None:
    with pytest.raises(SilasError):
        passkeys._read_challenge(json.dumps(garbage))


@pytest.mark.parametrize("part", ["authenticatorData", "signature", "clientDataJSON"])
@pytest.mark.parametrize("value", ["", "AAAA", "!", None, 5, [], {}])
def test_damaged_answer_is_refused(tenant: Any, owner: Any, grave: Card, device: Any, part: str, value: object) -> None:
    answered = json.loads(device.get(ask(tenant, grave, owner)))
    answered["response"][part] = value
    assert refusal(tenant, grave, owner, json.dumps(answered)) == "passkey_refused"


# --- what is written down


def thief_of(device: SoftPasskey) -> SoftPasskey:
    return SoftPasskey(credential_id=device.credential_id, counter=9)


def test_refused_answer_is_written_down(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    approve(tenant, grave, owner, thief_of(device).get(ask(tenant, grave, owner)))
    entry = newest(tenant)
    assert entry.event == "passkey_refused"
    assert entry.actor == f"user:{owner.pk}"
    assert entry.subject == f"card:{grave.pk}"
    assert json.loads(entry.data) == {"purpose": "step_up", "reason": "passkey_refused"}


def test_copy_of_a_passkey_is_written_down(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    device.counts = False
    approve(tenant, grave, owner, device.get(ask(tenant, grave, owner)))
    entry = newest(tenant)
    assert entry.event == "passkey_refused"
    assert json.loads(entry.data)["reason"] == "passkey_counter"


def test_refused_answer_leaves_the_card_open(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    approve(tenant, grave, owner, thief_of(device).get(ask(tenant, grave, owner)))
    with tenant_scope(tenant):
        assert Card.objects.get(pk=grave.pk).status == "open"
        assert not Answer.objects.exists()


def test_refused_answer_has_spent_its_challenge(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    options = ask(tenant, grave, owner)
    approve(tenant, grave, owner, thief_of(device).get(options))
    assert refusal(tenant, grave, owner, device.get(options)) == "passkey_refused"


def test_approval_without_any_answer_is_no_refused_passkey(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    refusal(tenant, grave, owner)
    assert newest(tenant).event != "passkey_refused"


def test_refused_registration_is_written_down(tenant: Any, owner: Any, approver: Any) -> None:
    with tenant_scope(tenant):
        options = passkeys.begin_registration(approver, rp_id=RP_ID, origin=ORIGIN)
        passkeys.finish_registration(owner, name="mine", credential=SoftPasskey().create(options))
    entry = newest(tenant)
    assert entry.event == "passkey_refused"
    assert entry.actor == f"user:{owner.pk}"
    assert json.loads(entry.data) == {"purpose": "register", "reason": "passkey_refused"}


# --- what stays


def test_stored_answer_can_be_checked_again(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    approve(tenant, grave, owner, device.get(ask(tenant, grave, owner)))
    with tenant_scope(tenant):
        assert answers.verify_answer(Answer.objects.select_related("card").get())


@pytest.mark.parametrize("part", ["signature", "nonce", "client_data", "authenticator_data", "rp_id", "origin"])
def test_stored_answer_with_a_changed_part_does_not_hold(
    tenant: Any, owner: Any, grave: Card, device: Any, part: str
) -> None:
    approve(tenant, grave, owner, device.get(ask(tenant, grave, owner)))
    with tenant_scope(tenant):
        row = Answer.objects.select_related("card").get()
        proof = answers.StepUp.model_validate({**row.step_up, part: "00" * 32})
        assert not passkeys.proves_answer(row, proof)


def test_stored_answer_proves_nothing_about_another_card(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    approve(tenant, grave, owner, device.get(ask(tenant, grave, owner)))
    with tenant_scope(tenant):
        row = Answer.objects.select_related("card").get()
        proof = answers.StepUp.model_validate(row.step_up)
        row.card = open_card(tenant)
        assert not passkeys.proves_answer(row, proof)


@pytest.mark.parametrize("change", ["public_key = 'x'", "credential_id = 'x'", "sign_count = 0", "rp_id = 'x'"])
def test_passkey_cannot_be_exchanged(tenant: Any, owner: Any, device: Any, change: str) -> None:
    from django.db import connection

    with pytest.raises(DatabaseError, match="exchanged"), tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(f"UPDATE approvals_passkey SET {change}")


# --- registering


def test_registering_at_an_address_of_numbers_is_refused(tenant: Any, owner: Any) -> None:
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        passkeys.begin_registration(owner, rp_id="127.0.0.1", origin="http://127.0.0.1")
    assert refused.value.code == "passkey_needs_a_name"


def test_registering_the_same_passkey_again_is_refused(tenant: Any, owner: Any, device: Any) -> None:
    with pytest.raises(SilasError) as refused:
        register(tenant, owner, device)
    assert refused.value.code == "passkey_known"


def test_registering_with_the_challenge_of_another_person_is_refused(tenant: Any, owner: Any, approver: Any) -> None:
    with tenant_scope(tenant):
        options = passkeys.begin_registration(approver, rp_id=RP_ID, origin=ORIGIN)
        refused = passkeys.finish_registration(owner, name="mine", credential=SoftPasskey().create(options))
    assert isinstance(refused, AnswerRefused)
    assert refused.code == "passkey_refused"


def test_registering_by_a_stranger_is_refused(tenant: Any, stranger: Any) -> None:
    with pytest.raises(SilasError):
        register(tenant, stranger, SoftPasskey())


def test_answer_to_a_card_registers_nothing(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    options = ask(tenant, grave, owner)
    assert options is not None
    other = SoftPasskey().create({**options, "rp": {"id": RP_ID}})
    with tenant_scope(tenant):
        assert isinstance(passkeys.finish_registration(owner, name="mine", credential=other), AnswerRefused)


def test_removing_another_person_s_passkey_finds_nothing(tenant: Any, owner: Any, approver: Any, device: Any) -> None:
    with tenant_scope(tenant):
        passkey = Passkey.objects.get()
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        passkeys.remove_passkey(passkey.pk, user=approver, actor="user:test")
    assert refused.value.status == 404


def test_one_answer_sent_twice_at_once_is_taken_once(tenant: Any, owner: Any, grave: Card, device: Any) -> None:
    answered = device.get(ask(tenant, grave, owner))
    found = race(*[lambda: approve(tenant, grave, owner, answered) for _ in range(2)])
    assert sum(isinstance(one, Decision) for one in found) == 1
