"""An answer counts for all that its card showed: its words, facts, details and risk, not only for what would run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from apps.approvals.cards import answers
from apps.approvals.cards.schemas import AnswerRefused, Fact
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import ApprovalVerdict, CardStatus, Risk
from apps.approvals.keys import signing
from apps.approvals.models import Answer, ApprovalToken, Card, Decision, PasskeyChallenge
from apps.approvals.passkeys import services as passkeys
from apps.approvals.queries import face_hash
from apps.approvals.schemas import to_base64
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals.test_answers import policy
from tests.factories.approvals import open_card
from tests.factories.passkeys import ORIGIN, RP_ID, SoftPasskey, enrolled

# Columns that a person reads, with what a hand behind the application would write there.
SHOWN = {
    "intent": "'Something else'",
    "rationale": "'Because'",
    "facts": "'[]'",
    "details": """'{"calls": []}'""",
    "body": """'{"note": 1}'""",
    "risk": "'low'",
    "affected": "'Nothing'",
    "requested_by": "'user:1'",
    "reads": """'[{"book": "orders", "key": "H-1", "revision": 9}]'""",
}

Rewrite = Callable[[Card, str, str], None]


@pytest.fixture
def rewrite(superuser_dsn: str) -> Rewrite:
    """Change what a card says, as nobody but a superuser of the database can."""

    def run(card: Card, column: str, value: str) -> None:
        with psycopg.connect(superuser_dsn) as raw:
            raw.execute("SET session_replication_role = replica")
            raw.execute(f"UPDATE approvals_card SET {column} = {value} WHERE id = %s", [card.pk])  # type: ignore[arg-type]

    return run


def card_of(tenant: Any, **fields: Any) -> Card:
    return open_card(tenant, facts=[Fact("Address", before="1 Alder Court", after="41 Canal Wharf")], **fields)


def press(card: Card, user: Any, face: str, choice: str = "approve") -> Any:
    with tenant_scope(card.tenant_id):
        return answer_card(card.pk, user=user, choice=choice, face=face)


def count(card: Card, model: Any) -> int:
    with tenant_scope(card.tenant_id):
        return int(model.objects.count())


@pytest.mark.parametrize("choice", ["approve", "decline"])
@pytest.mark.parametrize("column", SHOWN)
def test_press_for_another_face_decides_nothing(
    tenant: Any, owner: Any, rewrite: Rewrite, column: str, choice: str
) -> None:
    card = card_of(tenant)
    shown = face_hash(card)
    rewrite(card, column, SHOWN[column])
    with pytest.raises(SilasError) as refused:
        press(card, owner, shown, choice)
    assert refused.value.code == "card_changed"
    assert count(card, Decision) == 0
    assert count(card, Answer) == 0
    assert count(card, ApprovalToken) == 0


@pytest.mark.parametrize("face", ["", "0" * 64])
def test_press_that_names_no_face_of_the_card_decides_nothing(tenant: Any, owner: Any, face: str) -> None:
    card = card_of(tenant)
    with pytest.raises(SilasError) as refused:
        press(card, owner, face)
    assert refused.value.code == "card_changed"
    assert count(card, Decision) == 0


def test_press_for_the_face_that_is_shown_decides(tenant: Any, owner: Any) -> None:
    card = card_of(tenant)
    assert press(card, owner, face_hash(card)).verdict == ApprovalVerdict.APPROVED


@pytest.mark.parametrize("column", SHOWN)
def test_signed_answer_is_not_genuine_for_another_face(tenant: Any, owner: Any, rewrite: Rewrite, column: str) -> None:
    card = card_of(tenant)
    press(card, owner, face_hash(card))
    rewrite(card, column, SHOWN[column])
    with tenant_scope(tenant):
        assert not answers.is_genuine(Answer.objects.select_related("card").get())


def test_approval_of_one_person_does_not_count_for_another_face(
    tenant: Any, owner: Any, approver: Any, rewrite: Rewrite
) -> None:
    """Of two people the first saw something else than the second: that is one approval of each."""
    policy(tenant, people=2)
    card = card_of(tenant)
    assert press(card, owner, face_hash(card)) is None
    rewrite(card, "facts", "'[]'")
    with tenant_scope(tenant):
        now_shown = face_hash(Card.objects.get(pk=card.pk))
    assert press(card, approver, now_shown) is None
    assert count(card, ApprovalToken) == 0


def test_two_people_who_saw_the_same_face_approve(tenant: Any, owner: Any, approver: Any) -> None:
    policy(tenant, people=2)
    card = card_of(tenant)
    press(card, owner, face_hash(card))
    assert press(card, approver, face_hash(card)).verdict == ApprovalVerdict.APPROVED


def test_answer_that_was_signed_before_faces_were_is_still_genuine(tenant: Any, owner: Any) -> None:
    card = card_of(tenant)
    with tenant_scope(tenant):
        key = signing.key_for(owner)
        old = Answer(card=card, user=owner, verdict=ApprovalVerdict.APPROVED, answered_at=now(), key_id=key.key_id)
        old.signature = to_base64(signing.sign(key, answers.signed_bytes(old, face="")))
        assert answers.is_genuine(old)


# --- passkeys


@pytest.fixture
def device(tenant: Any, owner: Any) -> SoftPasskey:
    return enrolled(tenant, owner)


def asked(card: Card, user: Any, face: str) -> dict[str, Any]:
    with tenant_scope(card.tenant_id):
        options = passkeys.begin_step_up(card.pk, user=user, face=face, rp_id=RP_ID, origin=ORIGIN)
        assert options is not None
        return options


def test_passkey_is_asked_about_the_face_that_the_page_showed_only(tenant: Any, owner: Any, device: Any) -> None:
    card = card_of(tenant, declared_risk=Risk.HIGH)
    with pytest.raises(SilasError) as refused:
        asked(card, owner, "0" * 64)
    assert refused.value.code == "card_changed"
    with tenant_scope(tenant):
        assert not PasskeyChallenge.objects.filter(card=card).exists()


@pytest.mark.parametrize("column", [column for column in SHOWN if column != "risk"])
def test_passkey_that_signed_another_face_approves_nothing(
    tenant: Any, owner: Any, device: Any, rewrite: Rewrite, column: str
) -> None:
    """Even where the press itself names the face that is shown now."""
    card = card_of(tenant, declared_risk=Risk.HIGH)
    assertion = device.get(asked(card, owner, face_hash(card)))
    rewrite(card, column, SHOWN[column])
    with tenant_scope(tenant):
        now_shown = face_hash(Card.objects.get(pk=card.pk))
        outcome = answer_card(card.pk, user=owner, choice="approve", face=now_shown, step_up=assertion)
        state = Card.objects.get(pk=card.pk).status
    assert isinstance(outcome, AnswerRefused)
    assert state == CardStatus.OPEN
    assert count(card, ApprovalToken) == 0
