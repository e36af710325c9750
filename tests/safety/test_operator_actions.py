"""A passkey behind what lets an agent go on: for one kind of press about one hold, by one person, once and soon."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError

from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, PasskeyRule, Risk
from apps.approvals.models import ApprovalPolicy, PasskeyChallenge
from apps.approvals.passkeys import services as passkeys
from apps.approvals.passkeys.schemas import StepUp
from apps.approvals.queries import face_hash
from apps.audit.models import AuditEntry
from apps.safety import services
from apps.safety.enums import OperatorAction
from apps.safety.models import Hold
from apps.safety.services.operator_actions import assertion_subject
from apps.tenants.models import Membership
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import open_card
from tests.factories.passkeys import ORIGIN, RP_ID, SoftPasskey, enrolled
from tests.factories.safety import DANGER, TO_CONFIRM, TO_VERIFY, Agent, challenge_of, code_of, data, started
from tests.rivals import race


def held(tenant: Any, hint: str = DANGER, name: str = "clerk") -> Agent:
    agent = started(tenant, name)
    agent.report(hint)
    return agent


def joins(tenant: Any, user: Any) -> None:
    with tenant_scope(tenant):
        Membership.objects.create(user=user, role="owner")


@pytest.fixture
def blocked(tenant: Any) -> Agent:
    return held(tenant)


@pytest.fixture
def device(tenant: Any, owner: Any) -> SoftPasskey:
    return enrolled(tenant, owner)


@pytest.fixture
def required(tenant: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(passkey=PasskeyRule.REQUIRED)


def ask(agent: Agent, user: Any, what: OperatorAction = OperatorAction.ALLOW) -> Any:
    with tenant_scope(agent.tenant):
        return services.begin_operator_action(agent.hold().pk, what, user=user, rp_id=RP_ID, origin=ORIGIN)


def press(agent: Agent, user: Any, step_up: str = "", what: OperatorAction = OperatorAction.ALLOW) -> str:
    """The code or token, "" for an approval, or the refusal's code."""
    try:
        with tenant_scope(agent.tenant):
            shown = services.perform_operator_action(agent.hold().pk, what, user=user, step_up=step_up)
    except SilasError as refused:
        return refused.code
    return shown.code if isinstance(shown, AnswerRefused) else shown


def is_held(agent: Agent) -> bool:
    with tenant_scope(agent.tenant):
        return bool(Hold.objects.filter(principal=agent.principal.ref, state="open").exists())


@pytest.mark.parametrize("what", OperatorAction)
def test_whoever_has_a_passkey_is_asked_for_it_behind_a_block(
    blocked: Agent, owner: Any, device: Any, what: OperatorAction
) -> None:
    assert press(blocked, owner, what=what) == "step_up_required"
    assert is_held(blocked)


def test_passkeys_answer_unblocks(blocked: Agent, owner: Any, device: Any) -> None:
    assert press(blocked, owner, device.get(ask(blocked, owner))) == ""
    assert not is_held(blocked)


def test_code_that_a_passkey_stands_behind_works(blocked: Agent, owner: Any, device: Any) -> None:
    code = press(blocked, owner, device.get(ask(blocked, owner, OperatorAction.CODE)), OperatorAction.CODE)
    assert data(blocked.verify(challenge_of(blocked.report()), code))["verified"] is True


def test_whoever_has_no_passkey_is_not_asked(blocked: Agent, approver: Any, device: Any) -> None:
    assert ask(blocked, approver) is None and press(blocked, approver) == ""


@pytest.mark.parametrize(("hint", "asked"), [(TO_CONFIRM, False), (TO_VERIFY, True), (DANGER, True)])
def test_how_grave_the_hold_is_says_whether_it_is_asked_for(
    tenant: Any, owner: Any, device: Any, hint: str, asked: bool
) -> None:
    assert (ask(held(tenant, hint), owner) is not None) is asked


# --- policy that always wants one


def test_policy_refuses_whoever_has_none_and_says_why(tenant: Any, owner: Any, required: None) -> None:
    assert press(held(tenant, TO_CONFIRM), owner) == "passkey_missing"


def test_policy_takes_a_passkey_behind_a_token(tenant: Any, owner: Any, device: Any, required: None) -> None:
    agent = held(tenant, TO_CONFIRM)
    token = press(agent, owner, device.get(ask(agent, owner, OperatorAction.TOKEN)), OperatorAction.TOKEN)
    assert data(agent.confirm(TO_CONFIRM, token))["confirmed"] is True


def test_policy_for_one_kind_of_card_is_none_for_holds(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(scope="full_plan", passkey=PasskeyRule.REQUIRED)
    assert press(held(tenant), owner) == ""


def test_other_machine_does_not_confirm_where_a_passkey_is_wanted(tenant: Any, required: None) -> None:
    agent, other = held(tenant, TO_CONFIRM), Agent(tenant, may_confirm=True)
    assert code_of(other.confirm(TO_CONFIRM, execution_id=agent.hold().execution_id)) == "PERMISSION_DENIED"
    assert is_held(agent)


# --- what is bound


def assert_refused(agent: Agent, user: Any, answered: str) -> None:
    assert press(agent, user, answered) == "passkey_refused"
    assert is_held(agent)


@pytest.mark.parametrize("asked", [OperatorAction.CODE, OperatorAction.TOKEN])
def test_answer_for_another_press_is_refused(blocked: Agent, owner: Any, device: Any, asked: OperatorAction) -> None:
    assert_refused(blocked, owner, device.get(ask(blocked, owner, asked)))


def test_answer_about_another_hold_is_refused(blocked: Agent, tenant: Any, owner: Any, device: Any) -> None:
    other = held(tenant, name="other")
    assert_refused(blocked, owner, device.get(ask(other, owner)))
    answered = device.get(ask(blocked, owner))
    blocked.let_go()
    blocked.report(DANGER)
    assert_refused(blocked, owner, answered)


def test_answer_to_a_card_lifts_nothing(blocked: Agent, tenant: Any, owner: Any, device: Any) -> None:
    card = open_card(tenant, declared_risk=Risk.HIGH)
    with tenant_scope(tenant):
        options = passkeys.begin_step_up(card.pk, user=owner, face=face_hash(card), rp_id=RP_ID, origin=ORIGIN)
    assert_refused(blocked, owner, device.get(options))


def test_answer_about_a_hold_approves_no_card(blocked: Agent, tenant: Any, owner: Any, device: Any) -> None:
    card, answered = open_card(tenant, declared_risk=Risk.HIGH), device.get(ask(blocked, owner))
    with tenant_scope(tenant):
        outcome = decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED, step_up=answered)
    assert isinstance(outcome, AnswerRefused)
    assert outcome.code == "passkey_refused"


def test_answer_to_a_registration_lifts_nothing(blocked: Agent, tenant: Any, owner: Any, device: Any) -> None:
    with tenant_scope(tenant):
        options = passkeys.begin_registration(owner, rp_id=RP_ID, origin=ORIGIN)
    assert_refused(blocked, owner, device.get({**options, "rpId": RP_ID}))


def test_hold_that_says_something_else_meanwhile_is_not_lifted(blocked: Agent, owner: Any, device: Any) -> None:
    answered = device.get(ask(blocked, owner))
    with tenant_scope(blocked.tenant):
        Hold.objects.update(hint="reading the manual")
    assert_refused(blocked, owner, answered)


def test_answer_of_another_member_is_refused(
    blocked: Agent, tenant: Any, owner: Any, approver: Any, device: Any
) -> None:
    theirs = enrolled(tenant, approver)
    assert_refused(blocked, owner, theirs.get(ask(blocked, approver)))
    assert_refused(blocked, owner, theirs.get(ask(blocked, owner)))


def test_of_rivals_with_one_answer_one_sees_a_code(blocked: Agent, owner: Any, device: Any) -> None:
    answered = device.get(ask(blocked, owner, OperatorAction.CODE))
    seen = race(*[lambda: press(blocked, owner, answered, OperatorAction.CODE)] * 3)
    assert sorted(one == "passkey_refused" for one in seen) == [False, True, True]
    assert press(blocked, owner, answered, OperatorAction.CODE) == "passkey_refused"


def test_answer_after_its_time_is_refused(blocked: Agent, owner: Any, device: Any, settings: Any) -> None:
    answered = device.get(ask(blocked, owner))
    with time_machine.travel(now() + timedelta(seconds=settings.PASSKEY_SECONDS), tick=False):
        assert press(blocked, owner, answered) == "passkey_refused"


def test_copy_of_a_passkey_is_refused(blocked: Agent, owner: Any, device: Any) -> None:
    device.counts = False
    assert press(blocked, owner, device.get(ask(blocked, owner))) == "passkey_counter" and is_held(blocked)


# --- whose it is


def test_answer_given_in_another_company_is_refused(blocked: Agent, owner: Any, device: Any, other_tenant: Any) -> None:
    """One person in two companies, with the same passkey in both."""
    joins(other_tenant, owner)
    theirs = held(other_tenant)
    enrolled(other_tenant, owner, device)
    assert_refused(blocked, owner, device.get(ask(theirs, owner)))


def test_hold_of_another_company_is_not_found(blocked: Agent, owner: Any, other_tenant: Any) -> None:
    joins(other_tenant, owner)
    hold = blocked.hold().pk
    for verb in (
        lambda: services.perform_operator_action(hold, OperatorAction.ALLOW, user=owner),
        lambda: services.begin_operator_action(hold, OperatorAction.ALLOW, user=owner, rp_id=RP_ID, origin=ORIGIN),
    ):
        with pytest.raises(SilasError) as refused, tenant_scope(other_tenant):
            verb()
        assert refused.value.status == 404


@pytest.mark.parametrize("who", ["viewer", "agent", "stranger"])
def test_whoever_decides_nothing_lifts_nothing(blocked: Agent, who: str, request: Any) -> None:
    user = request.getfixturevalue(who)
    assert press(blocked, user) == "forbidden_role" and is_held(blocked)
    with pytest.raises(SilasError, match="owner"):
        ask(blocked, user)


# --- what is written down


def newest(tenant: Any) -> AuditEntry:
    with tenant_scope(tenant):
        entry: AuditEntry = AuditEntry.objects.order_by("-seq")[0]
        return entry


def test_refused_answer_is_written_down_and_spent(blocked: Agent, owner: Any, device: Any) -> None:
    options, hold = ask(blocked, owner), blocked.hold().pk
    press(blocked, owner, SoftPasskey(credential_id=device.credential_id, counter=9).get(options))
    entry = newest(blocked.tenant)
    assert entry.event == "passkey_refused"
    assert entry.actor == f"user:{owner.pk}"
    assert entry.subject == f"safety_hold:{hold}"
    assert json.loads(entry.data) == {"purpose": "hold_allow", "reason": "passkey_refused"}
    assert press(blocked, owner, device.get(options)) == "passkey_refused"


def test_stored_answer_can_be_checked_again_and_its_hash_is_audited(blocked: Agent, owner: Any, device: Any) -> None:
    press(blocked, owner, device.get(ask(blocked, owner)))
    audited = json.loads(newest(blocked.tenant).data)
    with tenant_scope(blocked.tenant):
        hold = Hold.objects.get()
        proof = StepUp.model_validate(hold.proofs["allow"])
        who = {"user_id": owner.pk, "tenant_id": hold.tenant_id}
        assert audited["proof"] == sha256_hex(hold.proofs["allow"])
        assert passkeys.proves(assertion_subject(hold, OperatorAction.ALLOW), proof, **who)
        assert not passkeys.proves(assertion_subject(hold, OperatorAction.CODE), proof, **who)


def test_challenge_about_nothing_cannot_be_stored(blocked: Agent, owner: Any, device: Any) -> None:
    ask(blocked, owner)
    with pytest.raises(IntegrityError), tenant_scope(blocked.tenant):
        PasskeyChallenge.objects.filter(purpose="hold_allow").update(subject="")
