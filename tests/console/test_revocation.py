"""The status of approvals on cards, and revoking them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.approvals.cards.services import answer_card, decide_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind
from apps.approvals.keys.services import rotate_key
from apps.approvals.models import Card, TokenRevocation
from apps.approvals.queries import face_hash
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, make_token, open_card
from tests.factories.cards import make_kind
from tests.factories.console import HTMX, browser
from tests.factories.work import Desk, make_desk, note
from tests.rivals import race

FORM = 'id="take-back"'


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


@pytest.fixture
def standing(tenant: Any, owner: Any) -> Card:
    goal = make_plan(type="goal", failure_context="Fix $failed_checks")
    token = make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=20, token_seconds=30 * 86_400)
    with tenant_scope(tenant):
        return Card.objects.get(pk=token.decision.card_id)


def page(user: Any, card: Card) -> str:
    return str(browser(user).get(reverse("console-card", args=[card.pk])).content.decode())


def work_page(user: Any) -> str:
    return str(browser(user).get(reverse("console-work")).content.decode())


def take_back(user: Any, card: Card, reason: str = "The customer called again.", **headers: Any) -> Any:
    return browser(user).post(reverse("console-take-back", args=[card.pk]), {"reason": reason}, **headers)


def taken_back(tenant: Any) -> list[TokenRevocation]:
    with tenant_scope(tenant):
        return list(TokenRevocation.objects.all())


# --- what the page says


def test_approval_that_stands_can_be_taken_back(owner: Any, standing: Card) -> None:
    found = page(owner, standing)
    assert "Used 0 of 20 times" in found
    assert FORM in found


def test_page_says_what_taking_back_does_and_does_not_do(owner: Any, standing: Card) -> None:
    found = page(owner, standing)
    assert "does not start" in found
    assert "Completed work stays" in found


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_who_may_not_decide_sees_that_it_stands_and_no_button(
    standing: Card, role: str, request: pytest.FixtureRequest
) -> None:
    found = page(request.getfixturevalue(role), standing)
    assert "Used 0 of 20 times" in found
    assert FORM not in found


def test_used_approval_whose_work_has_not_begun_can_be_taken_back(desk: Desk, approver: Any) -> None:
    assert FORM in page(approver, desk.card(desk.approved(approver)))


def test_used_approval_whose_work_is_done_cannot_be_taken_back(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    desk.work()
    found = page(approver, desk.card(item))
    assert "The approval has been used" in found
    assert FORM not in found


def test_approval_that_ran_out_says_so(tenant: Any, owner: Any) -> None:
    token = make_token(tenant, owner, make_plan())
    with time_machine.travel(token.expires_at + timedelta(seconds=1), tick=False):
        found = page(owner, token.decision.card)
    assert "The approval expired" in found
    assert FORM not in found


def test_approval_of_a_void_key_says_so(tenant: Any, owner: Any, standing: Card) -> None:
    with tenant_scope(tenant):
        rotate_key(owner, actor=f"user:{owner.pk}", compromised=True)
    found = page(owner, standing)
    assert "The key that signed this approval was revoked" in found
    assert FORM not in found


@pytest.mark.parametrize("verdict", [ApprovalVerdict.DECLINED, None])
def test_card_without_an_approval_says_nothing_of_one(tenant: Any, owner: Any, verdict: ApprovalVerdict | None) -> None:
    card = open_card(tenant)
    with tenant_scope(tenant):
        if verdict:
            decide_card(card.pk, user=owner, verdict=verdict)
    assert 'id="yes"' not in page(owner, card)


def test_answered_question_has_no_approval_to_take_back(tenant: Any, owner: Any) -> None:
    card = make_kind(tenant, CardKind.DECISION)
    with tenant_scope(tenant):
        answer_card(card.pk, user=owner, choice="old", face=face_hash(card))
    assert 'id="yes"' not in page(owner, card)


# --- revoking


def test_approval_taken_back_is_told_with_who_and_why(tenant: Any, owner: Any, approver: Any, standing: Card) -> None:
    take_back(approver, standing)
    found = page(owner, standing)
    assert f"{approver.display_name} revoked this approval" in found
    assert "“The customer called again.”" in found
    assert FORM not in found


def test_press_shows_the_card_as_it_is_now(owner: Any, standing: Card) -> None:
    response = take_back(owner, standing, **HTMX)
    assert response.status_code == 200
    assert "revoked this approval" in response.content.decode()


def test_press_without_scripts_leads_back_to_the_card(owner: Any, standing: Card) -> None:
    assert take_back(owner, standing)["Location"] == reverse("console-card", args=[standing.pk])


def test_reason_with_markup_is_only_text(owner: Any, standing: Card) -> None:
    take_back(owner, standing, "<img src=x>\u202e")
    found = page(owner, standing)
    assert "<img" not in found
    assert "\u202e" not in found


@pytest.mark.parametrize("reason", ["", " \n "])
def test_press_without_a_reason_is_refused(tenant: Any, owner: Any, standing: Card, reason: str) -> None:
    assert take_back(owner, standing, reason).status_code == 400
    assert taken_back(tenant) == []


@pytest.mark.parametrize(("role", "status"), [("agent", 403), ("viewer", 403), ("stranger", 403)])
def test_press_by_who_may_not_decide_is_refused(
    tenant: Any, standing: Card, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    assert take_back(request.getfixturevalue(role), standing).status_code == status
    assert taken_back(tenant) == []


def test_press_from_another_tenant_finds_nothing(tenant: Any, other_tenant: Any, standing: Card) -> None:
    from tests.factories.tenants import make_member

    assert take_back(make_member(other_tenant, "owner"), standing).status_code == 404
    assert taken_back(tenant) == []


def test_press_by_a_link_is_refused(owner: Any, standing: Card) -> None:
    assert browser(owner).get(reverse("console-take-back", args=[standing.pk])).status_code == 405


def test_press_from_another_site_is_refused(tenant: Any, owner: Any, standing: Card) -> None:
    address = reverse("console-take-back", args=[standing.pk])
    assert browser(owner, csrf=True).post(address, {"reason": "x"}).status_code == 403
    assert taken_back(tenant) == []


def test_card_without_an_approval_has_none_to_take_back(tenant: Any, owner: Any) -> None:
    assert take_back(owner, open_card(tenant)).status_code == 404


def test_second_press_says_who_was_first(owner: Any, approver: Any, standing: Card) -> None:
    take_back(approver, standing)
    response = take_back(owner, standing, **HTMX)
    assert response.status_code == 409
    assert f"{approver.display_name} revoked this approval" in response.content.decode()


def test_rivals_take_an_approval_back_once(tenant: Any, owner: Any, approver: Any, standing: Card) -> None:
    answers = race(lambda: take_back(owner, standing, **HTMX), lambda: take_back(approver, standing, **HTMX))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len(taken_back(tenant)) == 1


def test_work_of_an_approval_taken_back_does_not_begin(desk: Desk, owner: Any, approver: Any) -> None:
    item = desk.approved(approver)
    take_back(owner, desk.card(item))
    desk.work()
    assert desk.item(item.pk).status == "blocked"
    assert desk.order().data.get("note") is None


def test_standing_approval_taken_back_asks_again_each_time(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    with tenant_scope(desk.tenant):
        card = Card.objects.get(kind=CardKind.STANDING)
    take_back(owner, card)
    assert desk.propose(note(5)).outcome == "card"


# --- what runs without asking


def test_standing_approval_is_listed_with_what_is_left_of_it(owner: Any, standing: Card) -> None:
    found = work_page(owner)
    assert standing.intent in found
    assert "Used 0 of 20 times" in found
    assert f'href="{reverse("console-card", args=[standing.pk])}"' in found


def test_tenant_without_a_standing_approval_is_told_so(owner: Any) -> None:
    assert "No standing approvals" in work_page(owner)


def test_standing_approval_of_another_tenant_is_not_listed(other_tenant: Any, standing: Card) -> None:
    from tests.factories.tenants import make_member

    assert standing.intent not in work_page(make_member(other_tenant, "owner"))


def test_approval_of_one_plan_is_not_listed(desk: Desk, owner: Any, tenant: Any) -> None:
    make_token(tenant, owner, make_plan())
    assert "No standing approvals" in work_page(owner)


def test_used_standing_approval_is_listed_no_more(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=1)
    desk.propose(note(5))
    assert "No standing approvals" in work_page(owner)


def test_standing_approval_taken_back_is_listed_no_more(owner: Any, standing: Card) -> None:
    take_back(owner, standing)
    assert standing.intent not in work_page(owner)


def test_standing_approval_that_ran_out_is_listed_no_more(owner: Any, standing: Card) -> None:
    with time_machine.travel(now() + timedelta(days=31), tick=False):
        assert standing.intent not in work_page(owner)


def test_standing_approval_of_a_void_key_is_listed_no_more(tenant: Any, owner: Any, standing: Card) -> None:
    with tenant_scope(tenant):
        rotate_key(owner, actor=f"user:{owner.pk}", compromised=True)
    assert standing.intent not in work_page(owner)


def test_list_asks_no_more_for_more_approvals(tenant: Any, owner: Any) -> None:
    counts = []
    for _ in range(3):
        goal = make_plan(type="goal", failure_context="Fix $failed_checks")
        make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=2)
        with CaptureQueriesContext(connection) as asked:
            work_page(owner)
        counts.append(len(asked))
    assert len(set(counts)) == 1


def test_empty_queue_leads_to_what_runs_without_asking(owner: Any) -> None:
    found = browser(owner).get(reverse("console-review")).content.decode()
    assert f'href="{reverse("console-work")}#standing"' in found


def test_goal_s_own_approval_is_not_work_under_way(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=1)
    desk.propose(note(5))
    desk.work()
    with tenant_scope(desk.tenant):
        card = Card.objects.get(kind=CardKind.STANDING)
        assert WorkItem.objects.get(pk=desk.goal_id).status == "healthy"
    assert FORM not in page(owner, card)
