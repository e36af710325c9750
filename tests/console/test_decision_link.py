"""The page of a decision link: nothing is shown and nothing decided without the member's passkey, and only once."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client

from apps.approvals import queries
from apps.approvals.cards import answers, decision_links
from apps.approvals.cards.services import decide_card, edit_card
from apps.approvals.enums import ApprovalVerdict, CardKind, CardStatus, Risk
from apps.approvals.models import Answer, ApprovalPolicy, ApprovalToken, Card, DecisionLink, Passkey
from apps.approvals.tokens.payloads import approvable
from apps.approvals.tokens.services import verify_token
from apps.audit.models import AuditEntry
from apps.console.pages.decision_link.views import MAX_UNKNOWN
from apps.tenants.models import Membership
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, open_card
from tests.factories.cards import make_kind
from tests.factories.console import browser, make_card
from tests.factories.passkeys import SoftPasskey, enrolled
from tests.rivals import race

HOST = "localhost:8420"


class Holder:
    """Whoever holds a link and has `device`, in a browser without a login."""

    def __init__(self, path: str, device: SoftPasskey) -> None:
        self.path, self.device, self.client = path, device, Client(headers={"host": HOST})

    def get(self) -> Any:
        return self.client.get(self.path)

    def post(self, what: str, **data: str) -> Any:
        return self.client.post(f"{self.path}{what}/", data)

    def open(self) -> Any:
        """The page after the passkey has answered."""
        options = self.post("opening").json()["options"]
        return self.post("card", assertion=self.device.get(options))

    def sign(self, card: Card, choice: str = "approve", **data: str) -> dict[str, str]:
        """The form of an answer with the passkey's assertion."""
        form = {"choice": choice, "face": queries.face_hash(card), "freetext": "", **data}
        answer = self.post("signing", **form).json()
        assert "options" in answer, answer
        return {**form, "assertion": self.device.get(answer["options"])}

    def decide(self, card: Card, choice: str = "approve", **data: str) -> Any:
        return self.post("decision", **self.sign(card, choice, **data))


@pytest.fixture(autouse=True)
def _localhost(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["localhost", "testserver"]
    cache.clear()


@pytest.fixture
def device(tenant: Any, approver: Any) -> SoftPasskey:
    return enrolled(tenant, approver)


def link_to(card: Card, user: Any, **more: Any) -> str:
    with tenant_scope(card.tenant):
        return decision_links.create_decision_link(card, user, **more).path


@pytest.fixture
def card(tenant: Any) -> Card:
    return make_card(tenant, risk=Risk.MEDIUM)


@pytest.fixture
def holder(card: Card, approver: Any, device: SoftPasskey) -> Holder:
    return Holder(link_to(card, approver), device)


def state(card: Card) -> str:
    with tenant_scope(card.tenant):
        return str(queries.get_card(card.pk).status)


def is_untouched(card: Card) -> bool:
    with tenant_scope(card.tenant):
        return queries.get_card(card.pk).is_open and not Answer.objects.filter(card=card).exists()


def text(response: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).replace("&#x27;", "'").split())


# --- before the passkey


def test_holder_of_a_link_sees_nothing_of_the_card(holder: Holder, card: Card) -> None:
    page = holder.get()
    assert page.status_code == 200
    assert "asks for a decision" in text(page)
    for shown in (card.intent, card.rationale, card.affected, "Alder Court", str(card.pk), queries.face_hash(card)):
        assert shown not in page.content.decode()


def test_holder_of_a_link_sees_no_member(holder: Holder, approver: Any) -> None:
    page = holder.get().content.decode()
    assert approver.email not in page
    assert approver.display_name not in page


def test_page_is_neither_stored_nor_named_to_others(holder: Holder) -> None:
    page = holder.get()
    assert page["Referrer-Policy"] == "no-referrer"
    assert "no-store" in page["Cache-Control"]
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert "<script>" not in page.content.decode()
    assert "style=" not in page.content.decode()


def test_card_is_not_shown_without_the_passkey(holder: Holder, card: Card) -> None:
    for said in ("", "{}", json.dumps({"a": 1})):
        page = holder.post("card", assertion=said)
        assert page.status_code in (403, 409)
        assert card.intent not in page.content.decode()


def test_passkey_of_another_member_shows_nothing(holder: Holder, card: Card, tenant: Any, owner: Any) -> None:
    holder.device = enrolled(tenant, owner)
    page = holder.open()
    assert page.status_code == 409
    assert "isn't registered to your account" in text(page)
    assert card.intent not in page.content.decode()
    with tenant_scope(tenant):
        refused = AuditEntry.objects.get(event="passkey_refused")
    assert refused.actor == f"user:{link_owner(card).pk}"
    assert refused.subject == f"card:{card.pk}"


def test_login_of_another_member_changes_nothing(holder: Holder, card: Card, owner: Any) -> None:
    holder.client = browser(owner)
    page = holder.client.get(holder.path, headers={"host": HOST})
    assert card.intent not in page.content.decode()


def test_unknown_link_says_so_and_guessing_is_stopped(holder: Holder) -> None:
    guesser = Holder("/approve/nothing/", SoftPasskey())
    codes = [guesser.get().status_code for _ in range(MAX_UNKNOWN + 1)]
    assert codes == [404] * MAX_UNKNOWN + [429]
    assert holder.get().status_code == 429  # not even a right guess
    assert "Too many attempts" in text(guesser.get())


def test_opening_a_known_link_often_counts_for_nothing(holder: Holder) -> None:
    assert {holder.get().status_code for _ in range(MAX_UNKNOWN + 1)} == {200}


# --- the card


def test_member_sees_the_card(holder: Holder, card: Card) -> None:
    page = holder.open()
    assert page.status_code == 200
    for shown in (card.intent, card.rationale, card.affected, "18 Alder Court", "Canal Wharf", "Medium risk"):
        assert shown in text(page)
    assert "Reason for declining" in text(page)
    assert 'value="approve"' in page.content.decode()
    assert 'value="decline"' in page.content.decode()


def test_assertion_shows_the_card_once(holder: Holder, card: Card) -> None:
    assertion = holder.device.get(holder.post("opening").json()["options"])
    assert holder.post("card", assertion=assertion).status_code == 200
    again = holder.post("card", assertion=assertion)
    assert again.status_code == 409
    assert card.intent not in again.content.decode()


def test_assertion_that_shows_a_card_decides_nothing(holder: Holder, card: Card) -> None:
    assertion = holder.device.get(holder.post("opening").json()["options"])
    page = holder.post("decision", choice="approve", face=queries.face_hash(card), assertion=assertion)
    assert page.status_code == 409
    assert is_untouched(card)


def test_draft_offers_no_edit(tenant: Any, approver: Any, device: SoftPasskey) -> None:
    card = make_kind(tenant, CardKind.DRAFT_REVIEW)
    page = Holder(link_to(card, approver), device).open()
    assert 'value="edit"' not in page.content.decode()


# --- the answer


def test_approval_issues_the_usual_token(holder: Holder, card: Card, approver: Any, tenant: Any) -> None:
    page = holder.decide(card)
    assert page.status_code == 200
    assert "Your answer was saved" in text(page)
    with tenant_scope(tenant):
        answer = Answer.objects.select_related("card").get(card=card)
        token = ApprovalToken.objects.get(decision__card=card)
        assert answer.user == approver
        assert answer.step_up is not None
        assert answers.verify_answer(answer)
        subject = approvable(card.scope, card.payload)
        assert verify_token(token, subject).ok
        assert DecisionLink.objects.get(card=card).spent_at is not None
        events = list(AuditEntry.objects.filter(subject=f"card:{card.pk}").values_list("event", flat=True))
    assert "decision_link_created" in events
    assert "decision_link_used" in events


def test_low_risk_takes_the_passkey_too(tenant: Any, approver: Any, device: SoftPasskey) -> None:
    card = make_card(tenant)
    holder = Holder(link_to(card, approver), device)
    page = holder.post("decision", choice="approve", face=queries.face_hash(card), assertion="")
    assert page.status_code == 403
    assert "Confirm this with your passkey" in text(page)
    assert is_untouched(card)
    assert holder.decide(card).status_code == 200


def test_decline_without_the_passkey_decides_nothing(holder: Holder, card: Card) -> None:
    page = holder.post("decision", choice="decline", face=queries.face_hash(card), assertion="")
    assert page.status_code == 403
    assert is_untouched(card)


def test_decline_is_signed_with_its_reason(holder: Holder, card: Card) -> None:
    assert holder.decide(card, "decline", freetext="Wrong customer.").status_code == 200
    with tenant_scope(card.tenant):
        answer = Answer.objects.select_related("card").get(card=card)
        assert answer.said == {"choice": "decline", "freetext": "Wrong customer."}
        assert answers.verify_answer(answer)
        assert not ApprovalToken.objects.filter(decision__card=card).exists()
        answer.said = {"choice": "decline", "freetext": "Wrong agent."}
        assert not answers.verify_answer(answer)


@pytest.mark.parametrize("changed", [{"choice": "approve"}, {"freetext": "Other words."}])
def test_passkey_signs_the_verb_and_the_words(holder: Holder, card: Card, changed: dict[str, str]) -> None:
    page = holder.post("decision", **{**holder.sign(card, "decline", freetext="No."), **changed})
    assert page.status_code == 409
    assert is_untouched(card)


def test_assertion_for_one_card_decides_no_other(holder: Holder, card: Card, approver: Any, tenant: Any) -> None:
    other = make_card(tenant, risk=Risk.MEDIUM)
    signed = Holder(link_to(other, approver), holder.device).sign(other)
    page = holder.post("decision", **{**signed, "face": queries.face_hash(card)})
    assert page.status_code == 409
    assert is_untouched(card)
    assert is_untouched(other)


def test_passkey_of_another_member_decides_nothing(holder: Holder, card: Card, tenant: Any, owner: Any) -> None:
    holder.device = enrolled(tenant, owner)
    page = holder.decide(card)
    assert page.status_code == 409
    assert is_untouched(card)
    with tenant_scope(tenant):
        assert DecisionLink.objects.get(card=card).spent_at is None


def test_removed_passkey_decides_nothing(holder: Holder, card: Card, tenant: Any) -> None:
    signed = holder.sign(card)
    with tenant_scope(tenant):
        Passkey.objects.update(removed_at=now())
    assert holder.post("decision", **signed).status_code == 409
    assert holder.post("opening").json()["error"]["code"] == "passkey_missing"
    assert is_untouched(card)


def test_replayed_press_decides_nothing_and_says_why(holder: Holder, card: Card) -> None:
    signed = holder.sign(card)
    assert holder.post("decision", **signed).status_code == 200
    again = holder.post("decision", **signed)
    assert again.status_code == 409
    assert "already used" in text(again)
    assert "already used" in text(holder.get())
    with tenant_scope(card.tenant):
        assert Answer.objects.filter(card=card).count() == 1
        assert ApprovalToken.objects.filter(decision__card=card).count() == 1


def test_late_press_decides_nothing_and_says_why(tenant: Any, approver: Any, device: SoftPasskey) -> None:
    card = make_card(tenant, risk=Risk.MEDIUM, seconds=86_400)
    holder = Holder(link_to(card, approver, expires_in=timedelta(minutes=5)), device)
    signed = holder.sign(card)
    with time_machine.travel(now() + timedelta(minutes=6)):
        for page in (holder.get(), holder.post("card", assertion="x"), holder.post("decision", **signed)):
            assert page.status_code == 409
            assert "This link has expired" in text(page)
        assert holder.post("opening").json()["error"]["code"] == "decision_link_expired"
    assert is_untouched(card)


def test_card_that_is_decided_meanwhile_says_so(holder: Holder, card: Card, owner: Any) -> None:
    signed = holder.sign(card)
    with tenant_scope(card.tenant):
        decide_card(card.pk, user=owner, verdict=ApprovalVerdict.DECLINED)
    for page in (holder.get(), holder.post("decision", **signed)):
        assert page.status_code == 409
        assert "already decided" in text(page)
    with tenant_scope(card.tenant):
        assert Answer.objects.filter(card=card).count() == 1


def test_changed_card_says_so(tenant: Any, owner: Any, approver: Any, device: SoftPasskey) -> None:
    plan = make_plan()
    card = open_card(tenant, plan)
    holder = Holder(link_to(card, approver), device)
    signed = holder.sign(card)
    with tenant_scope(tenant):
        new = edit_card(card.pk, user=owner, payload={**plan, "title": "Another title"})
    for page in (holder.get(), holder.post("decision", **signed)):
        assert page.status_code == 409
        assert "was changed after the link was sent" in text(page)
    assert is_untouched(new)


def test_answer_to_what_the_page_did_not_show_is_refused(holder: Holder, card: Card) -> None:
    form = {"choice": "approve", "face": "0" * 64, "freetext": ""}
    assert holder.post("signing", **form).json()["error"]["code"] == "card_changed"
    assert holder.post("decision", **{**holder.sign(card), "face": "0" * 64}).status_code == 409
    assert is_untouched(card)


@pytest.mark.parametrize("lost", ["removed", "role", "inactive"])
def test_member_who_lost_the_right_decides_nothing(holder: Holder, card: Card, approver: Any, lost: str) -> None:
    signed = holder.sign(card)
    with tenant_scope(card.tenant):
        if lost == "removed":
            Membership.objects.filter(user=approver).delete()
        elif lost == "role":
            Membership.objects.filter(user=approver).update(role="agent")
        else:
            type(approver).objects.filter(pk=approver.pk).update(is_active=False)
    for page in (holder.get(), holder.post("decision", **signed)):
        assert page.status_code == 403
        assert "Only an owner or an approver can decide this" in text(page)
    assert is_untouched(card)


def test_requester_can_only_decline(tenant: Any, approver: Any, device: SoftPasskey) -> None:
    card = make_card(tenant, risk=Risk.MEDIUM, requested_by=f"user:{approver.pk}")
    holder = Holder(link_to(card, approver), device)
    assert 'value="approve"' not in holder.open().content.decode()
    page = holder.decide(card)
    assert page.status_code == 403
    assert is_untouched(card)
    assert holder.decide(card, "decline").status_code == 200


def test_policy_of_two_people_waits_for_the_second(holder: Holder, card: Card, tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        ApprovalPolicy.objects.create(people=2)
    assert "Another person has to approve" in text(holder.decide(card))
    assert state(card) == CardStatus.OPEN
    again = Holder(link_to(card, link_owner(card)), holder.device)
    assert again.decide(card).status_code == 409
    with tenant_scope(tenant):
        assert Answer.objects.filter(card=card).count() == 1
    theirs = enrolled(tenant, owner)
    second = Holder(link_to(card, owner), theirs)
    assert second.decide(card).status_code == 200
    assert state(card) == CardStatus.DECIDED


def link_owner(card: Card) -> Any:
    with tenant_scope(card.tenant):
        return DecisionLink.objects.select_related("user").get(card=card).user


def test_choice_that_the_card_does_not_offer_is_refused(holder: Holder, card: Card) -> None:
    form = {"choice": "edit", "face": queries.face_hash(card), "freetext": ""}
    assert holder.post("signing", **form).json()["error"]["code"] == "choice_unknown"


def test_one_of_two_presses_decides(holder: Holder, card: Card) -> None:
    signed = [holder.sign(card), holder.sign(card, "decline")]
    pages = race(
        *[lambda form=form: Client(headers={"host": HOST}).post(f"{holder.path}decision/", form) for form in signed]
    )
    assert sorted(page.status_code for page in pages) == [200, 409]
    with tenant_scope(card.tenant):
        assert Answer.objects.filter(card=card).count() == 1
