"""Cards of every kind in a real browser: company that comes and goes, asking anew, a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind, Withdrawal
from apps.approvals.models import ApprovalPolicy, Card
from apps.approvals.queries import face_hash
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.cards import batch, make_kind
from tests.factories.console import make_card
from tests.factories.work import make_desk

PHONE = {"viewport": {"width": 375, "height": 760}, "has_touch": True}
NARROWEST = {"viewport": {"width": 320, "height": 640}, "has_touch": True}


def answer(card: Card, user: Any, choice: str) -> None:
    answer_card(card.pk, user=user, choice=choice, face=face_hash(card))


async def test_colleague_is_seen_coming_and_going(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any
) -> None:
    card = await in_thread(make_card, tenant)
    mine = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    theirs = await log_in(open_page, web, approver, f"/console/review/{card.pk}/")
    await expect(mine.locator(".lookers")).to_contain_text(f"{approver.display_name} is also viewing this")
    await theirs.goto(f"{web}/console/activity/")
    await expect(mine.locator(".lookers")).to_have_count(0)


async def test_card_handed_to_a_colleague_is_theirs_without_a_reload(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any
) -> None:
    card = await in_thread(make_card, tenant)
    theirs = await log_in(open_page, web, approver, f"/console/review/{card.pk}/")
    mine = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await mine.locator(".people > summary").click()
    await mine.get_by_role("button", name=approver.display_name).click()
    await expect(theirs.locator(".assigned")).to_contain_text("Assigned to you")


async def test_second_of_two_people_sees_the_first_approval(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any
) -> None:
    await in_scope(tenant.pk, ApprovalPolicy.objects.create, people=2)
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await expect(page.locator(".quorum")).to_contain_text("0 of 2 approvals")
    await in_scope(tenant.pk, answer, card, approver, "approve")
    await expect(page.locator(".quorum")).to_contain_text(f"1 of 2 approvals: {approver.display_name}")
    await page.keyboard.press("a")
    await expect(page.locator("#decided")).to_contain_text("“Change the address”")


async def test_card_taken_back_says_so_without_a_reload(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await in_scope(tenant.pk, withdraw_card, card.pk, reason=Withdrawal.REQUESTER)
    await expect(page.locator("#settled")).to_contain_text("Withdrawn")


async def test_ticks_are_asked_anew_and_approved(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_kind, tenant, CardKind.BATCH_REVIEW)
    page = await log_in(open_page, web, owner)
    await page.get_by_role("checkbox").nth(3).uncheck()
    await page.get_by_role("button", name="Archive only the ticked ones").click()
    await expect(page.locator("#intent")).to_have_text("Only 2 of 4: Archive 4 answered tickets")
    await page.keyboard.press("a")
    await page.get_by_role("button", name="Confirm, do it for these 2").click()
    await expect(page.locator("#decided")).to_contain_text("Approved")


async def test_lines_are_asked_anew_in_the_order_in_which_they_were_ticked(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_thread(make_kind, tenant, CardKind.BATCH_REVIEW)
    page = await log_in(open_page, web, owner)
    places = page.locator(".batch .place")
    await expect(places).to_have_text(["1", "", "2", "3"])
    await page.get_by_role("checkbox").nth(0).uncheck()
    await expect(places).to_have_text(["", "", "1", "2"])
    await page.get_by_role("checkbox").nth(1).check()
    await page.get_by_role("checkbox").nth(0).check()
    await page.get_by_role("checkbox").nth(2).uncheck()
    await expect(places).to_have_text(["3", "2", "", "1"])
    await page.get_by_role("button", name="Archive only the ticked ones").click()
    await expect(page.locator("#intent")).to_have_text("Only 3 of 4: Archive 4 answered tickets")
    newest = await in_scope(tenant.pk, Card.objects.latest, "created_at")
    assert newest.payload["item_ids"] == ["T-4", "T-2", "T-1"]


async def test_key_e_edits_the_values(web: str, open_page: Any, tenant: Any, owner: Any, tmp_path: Path) -> None:
    desk = await in_thread(make_desk, tenant, tmp_path)
    await in_thread(desk.waiting, 50)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("e")
    await page.get_by_label("note").fill("60")
    await page.get_by_role("button", name="Resubmit with these values").click()
    await expect(page.locator("#resubmitted")).to_contain_text("It needs its own approval")
    await expect(page.locator("#card .details")).to_contain_text("60")


def _bodies(card: Card) -> str:
    return f"/console/review/{card.pk}/"


@pytest.mark.parametrize("kind", CardKind)
async def test_body_of_a_card_fits_a_phone(web: str, open_page: Any, tenant: Any, owner: Any, kind: CardKind) -> None:
    """Spec 0.5.3: 300 px at a width of 375, without the details."""
    fields = batch(10) if kind is CardKind.BATCH_REVIEW else {}
    card = await in_thread(make_kind, tenant, kind, **fields)
    page = await log_in(open_page, web, owner, _bodies(card), **PHONE)
    height = await page.locator("#card > .body").evaluate("body => body.getBoundingClientRect().height")
    assert height <= 300


@pytest.mark.parametrize("options", [{}, PHONE])
async def test_lines_of_a_long_batch_do_not_run_into_each_other(
    web: str, open_page: Any, tenant: Any, owner: Any, options: dict[str, Any]
) -> None:
    card = await in_thread(lambda: make_kind(tenant, CardKind.BATCH_REVIEW, **batch(20)))
    page = await log_in(open_page, web, owner, _bodies(card), **options)
    cut = await page.locator(".batch .line").evaluate_all(
        "lines => lines.filter(line => line.scrollHeight > line.clientHeight + 1).length"
    )
    assert cut == 0


@pytest.mark.parametrize("path", ["/console/review/", "/console/insights/"])
async def test_page_does_not_scroll_sideways_on_the_narrowest_phone(
    web: str, open_page: Any, tenant: Any, owner: Any, path: str
) -> None:
    for kind in (CardKind.GATE, CardKind.BATCH_REVIEW):
        card = await in_thread(make_kind, tenant, kind)
    await in_scope(tenant.pk, answer, card, owner, "decline")
    page = await log_in(open_page, web, owner, path, **NARROWEST)
    wider = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider == 0
