"""A card is opened, decided once by the right person, or runs out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, IntegrityError, connection, connections
from django.test.utils import CaptureQueriesContext

from apps.approvals import queries, registry, signals
from apps.approvals.cards.lifecycle import expire_card
from apps.approvals.cards.schemas import Fact
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Risk
from apps.approvals.models import ApprovalToken, ApproverKey, Card, Decision
from apps.approvals.registry import on_card
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards, make_plan, make_token, open_card
from tests.factories.cards import make_kind
from tests.factories.tenants import make_member
from tests.rivals import race

APPROVED = ApprovalVerdict.APPROVED


def decide(tenant: Any, card: Card, user: Any, verdict: ApprovalVerdict = APPROVED) -> Decision:
    conditions = {"not_before": "Monday"} if verdict == ApprovalVerdict.CONDITIONAL else {}
    with tenant_scope(tenant):
        decision = decide_card(card.pk, user=user, verdict=verdict, conditions=conditions)
        assert decision is not None
        return decision


def refusal(tenant: Any, card: Card, user: Any) -> SilasError:
    with pytest.raises(SilasError) as caught:
        decide(tenant, card, user)
    return caught.value


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_decide_card_without_approving_role_is_forbidden(tenant: Any, request: Any, role: str) -> None:
    refused = refusal(tenant, open_card(tenant), request.getfixturevalue(role))
    assert refused.code == "approver_required"
    assert refused.status == 403


def test_decide_card_by_approver_of_other_tenant_is_forbidden(tenant: Any, other_tenant: Any) -> None:
    foreign = make_member(other_tenant, "owner")
    assert refusal(tenant, open_card(tenant), foreign).code == "approver_required"


def test_decide_card_of_other_tenant_is_not_found(tenant: Any, other_tenant: Any, owner: Any) -> None:
    assert refusal(tenant, open_card(other_tenant), owner).status == 404


@pytest.mark.parametrize("role", ["owner", "approver"])
def test_decide_card_by_approving_role_mints_a_token(tenant: Any, request: Any, role: str) -> None:
    decision = decide(tenant, open_card(tenant), request.getfixturevalue(role))
    assert decision.token.plan_hash == decision.card.payload_hash


def test_decide_card_twice_is_refused(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    decide(tenant, card, owner, ApprovalVerdict.DECLINED)
    refused = refusal(tenant, card, approver)
    assert refused.code == "card_decided"
    assert refused.status == 409


def test_decide_card_by_two_at_once_is_won_by_one(tenant: Any, owner: Any, approver: Any) -> None:
    card = open_card(tenant)
    answers = race(lambda: decide(tenant, card, owner), lambda: decide(tenant, card, approver))
    assert sorted(getattr(answer, "code", "won") for answer in answers) == ["card_decided", "won"]


def test_decide_card_after_its_time_is_refused(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    with time_machine.travel(card.expires_at, tick=False):
        assert refusal(tenant, card, owner).code == "card_expired"


@pytest.mark.parametrize("verdict", [verdict for verdict in ApprovalVerdict if verdict is not APPROVED])
def test_decide_card_with_other_verdict_mints_no_token(tenant: Any, owner: Any, verdict: ApprovalVerdict) -> None:
    decision = decide(tenant, open_card(tenant), owner, verdict)
    with tenant_scope(tenant):
        assert not ApprovalToken.objects.filter(decision=decision).exists()


def test_decide_card_with_edited_payload_is_refused(tenant: Any, owner: Any, superuser_dsn: str) -> None:
    card = open_card(tenant)
    with psycopg.connect(superuser_dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute(
            "UPDATE approvals_card SET payload = jsonb_set(payload, '{title}', '\"X\"') WHERE id = %s", [card.pk]
        )
    assert refusal(tenant, card, owner).code == "card_damaged"


def test_decide_card_when_a_receiver_fails_changes_nothing(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)

    def fail(*_: Any) -> None:
        raise RuntimeError("receiver")

    signals.card_decided.connect(fail)
    try:
        with pytest.raises(RuntimeError):
            decide(tenant, card, owner)
    finally:
        signals.card_decided.disconnect(fail)
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).status == CardStatus.OPEN


def test_decide_card_makes_one_key_for_one_person(tenant: Any, owner: Any) -> None:
    race(*[lambda: make_token(tenant, owner, make_plan()) for _ in range(4)])
    with tenant_scope(tenant):
        assert ApproverKey.objects.filter(user=owner).count() == 1


def test_decide_card_without_signing_key_is_refused(tenant: Any, owner: Any, settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = ""
    assert refusal(tenant, open_card(tenant), owner).code == "signing_key_missing"


def test_decide_card_with_other_signing_key_is_refused(tenant: Any, owner: Any, settings: Any) -> None:
    make_token(tenant, owner, make_plan())
    settings.SILAS_SIGNING_KEY = "another"
    assert refusal(tenant, open_card(tenant), owner).code == "seal_broken"


def test_decide_card_with_key_row_of_another_person_is_refused(
    tenant: Any, owner: Any, approver: Any, superuser_dsn: str
) -> None:
    make_token(tenant, approver, make_plan())
    with psycopg.connect(superuser_dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute("UPDATE approvals_approverkey SET user_id = %s WHERE user_id = %s", [owner.pk, approver.pk])
    assert refusal(tenant, open_card(tenant), owner).code == "seal_broken"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approvals_approverkey SET public_key = repeat('0', 64) WHERE user_id = %s",
        "DELETE FROM approvals_approverkey WHERE user_id = %s",
    ],
)
def test_approver_s_key_cannot_be_exchanged_by_the_application(tenant: Any, owner: Any, statement: str) -> None:
    make_token(tenant, owner, make_plan())
    with pytest.raises(DatabaseError, match="cannot be exchanged"), tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(statement, [owner.pk])


def test_approver_s_key_may_be_taken_away_by_the_tables_owner(tenant: Any, owner: Any) -> None:
    make_token(tenant, owner, make_plan())
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT set_config('silas.tenant', %s, false)", [str(tenant.pk)])
        cursor.execute("DELETE FROM approvals_approverkey WHERE user_id = %s", [owner.pk])
    with tenant_scope(tenant):
        assert not ApproverKey.objects.filter(user=owner).exists()


@pytest.mark.parametrize("field", ["intent", "rationale", "facts", "details", "payload", "consequence", "risk"])
def test_card_cannot_say_something_else_later(tenant: Any, field: str) -> None:
    card = open_card(tenant)
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(**{field: "low" if field == "risk" else {"a": 1}})


def test_card_that_is_settled_cannot_be_opened_again(tenant: Any, owner: Any) -> None:
    card = open_card(tenant)
    decide(tenant, card, owner)
    with pytest.raises(DatabaseError, match="stays settled"), tenant_scope(tenant):
        Card.objects.filter(pk=card.pk).update(status=CardStatus.OPEN)


def test_decision_cannot_be_rewritten(tenant: Any, owner: Any) -> None:
    decision = decide(tenant, open_card(tenant), owner)
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        Decision.objects.filter(pk=decision.pk).update(verdict="declined")


def test_open_card_takes_risk_from_scope_and_reversibility(tenant: Any) -> None:
    assert open_card(tenant, reversible=False).risk == Risk.HIGH


def test_open_card_keeps_facts_without_blanks(tenant: Any) -> None:
    card = open_card(tenant, facts=[Fact("Address", before="Old", after="New"), Fact("Affects", text="1 policy")])
    assert card.facts == [
        {"label": "Address", "before": "Old", "after": "New"},
        {"label": "Affects", "text": "1 policy"},
    ]


def test_open_card_twice_for_one_subject_is_refused(tenant: Any) -> None:
    subject = uuid4()
    open_card(tenant, subject_id=subject)
    with pytest.raises(IntegrityError):
        open_card(tenant, subject_id=subject)


def test_open_card_tells_the_rooms_above(tenant: Any) -> None:
    told: list[Any] = []
    signals.card_changed.connect(told.append)
    try:
        card = open_card(tenant)
    finally:
        signals.card_changed.disconnect(told.append)
    assert told == [card]


def test_card_that_no_room_handles_is_not_opened(tenant: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="no room handles cards plan about nothing"):
        open_card(tenant, subject_kind="nothing")
    with tenant_scope(tenant):
        assert not Card.objects.exists()


def test_second_handler_of_the_same_cards_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="have handlers already"):
        on_card(CardKind.PLAN, "thing", decided=lambda card, decision, token: None)


def test_every_kind_of_card_has_a_room_that_handles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {key: handlers for key, handlers in registry._cards.items() if key[1] != "thing"}
    monkeypatch.setattr(registry, "_cards", ours)
    assert registry.kinds_without_handlers() == []


def test_open_cards_are_oldest_first(tenant: Any) -> None:
    first, second = open_card(tenant), open_card(tenant)
    with tenant_scope(tenant):
        assert list(queries.open_cards()) == [first, second]


def test_card_nobody_waits_for_stands_behind_one_that_somebody_does(tenant: Any) -> None:
    offer, asked = make_kind(tenant, CardKind.POST_EXECUTION), open_card(tenant, session_id=uuid4())
    with tenant_scope(tenant):
        assert list(queries.open_cards()) == [asked, offer]


def test_question_that_nobody_in_a_conversation_asked_stands_behind_one_that_somebody_did(tenant: Any) -> None:
    proposed, asked = make_kind(tenant, CardKind.DECISION), open_card(tenant, session_id=uuid4())
    with tenant_scope(tenant):
        assert list(queries.open_cards()) == [asked, proposed]


@pytest.mark.parametrize("rows", [1, 3])
def test_open_cards_take_one_query(tenant: Any, deployment: Any, rows: int) -> None:
    for _ in range(rows):
        open_card(tenant, deployment_id=deployment.pk)
    with tenant_scope(tenant):
        queries.waiting_count()  # the scope tells the database who asks with its first statement
        with CaptureQueriesContext(connection) as queried:
            titles = [card.deployment.title for card in queries.open_cards()]
    assert len(titles) == rows
    assert len(queried) == 1


def test_open_cards_of_other_tenant_are_not_seen(tenant: Any, other_tenant: Any) -> None:
    open_card(other_tenant)
    with tenant_scope(tenant):
        assert queries.waiting_count() == 0


def test_card_of_other_tenant_is_not_found(tenant: Any, other_tenant: Any) -> None:
    foreign = open_card(other_tenant)
    with pytest.raises(SilasError, match="Not found"), tenant_scope(tenant):
        queries.get_card(foreign.pk)


def test_expire_cards_closes_only_late_ones(tenant: Any) -> None:
    late = open_card(tenant)
    with time_machine.travel(now() + timedelta(days=1)):
        fresh = open_card(tenant)
        expire_cards(tenant)
        with tenant_scope(tenant):
            assert list(queries.open_cards()) == [fresh]
    with tenant_scope(tenant):
        assert queries.get_card(late.pk).status == CardStatus.EXPIRED


def test_card_expires_once(tenant: Any) -> None:
    card = open_card(tenant)
    with time_machine.travel(now() + timedelta(days=1)):
        expire_cards(tenant)
        with tenant_scope(tenant):
            assert expire_card(card.pk) is None
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event="card_expired").count() == 1


def test_card_whose_time_out_comes_early_waits_for_it(tenant: Any) -> None:
    card = open_card(tenant)
    expire_cards(tenant)
    with tenant_scope(tenant):
        assert queries.get_card(card.pk).status == CardStatus.OPEN
        assert QueueMessage.objects.get(kind="card_expiry").available_at == card.expires_at


def test_decide_card_is_written_down_without_words(tenant: Any, owner: Any) -> None:
    card = open_card(tenant, scope=ApprovalScope.FULL_PLAN)
    decide(tenant, card, owner)
    with tenant_scope(tenant):
        events = list(AuditEntry.objects.order_by("seq").values_list("event", flat=True))
    assert events == ["card_opened", "card_decided", "approval_token_issued"]
