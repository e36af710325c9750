"""Take an approval back in a real browser: from where it is listed, and while a colleague looks on."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.tokens.services import revoke_token
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.approvals import make_plan, make_token


@pytest.fixture
def token(tenant: Any, owner: Any) -> ApprovalToken:
    goal = make_plan(type="goal", failure_context="Fix $failed_checks")
    return make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=20)


async def test_standing_approval_is_taken_back_from_the_list(
    web: str, open_page: Any, owner: Any, token: ApprovalToken
) -> None:
    page = await log_in(open_page, web, owner, "/console/work/")
    await page.get_by_role("link", name="Revoke").click()
    await page.get_by_label("Reason").fill("It refunds too much.")
    await page.get_by_role("button", name="Revoke approval").click()
    await expect(page.locator("#yes")).to_contain_text(f"{owner.display_name} revoked this approval")
    await page.goto(f"{web}/console/work/")
    await expect(page.locator("#standing")).to_contain_text("No standing approvals")


async def test_colleague_sees_that_an_approval_was_taken_back(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any, token: ApprovalToken
) -> None:
    card: Card = await in_thread(lambda: token.decision.card)
    page = await log_in(open_page, web, approver, f"/console/review/{card.pk}/")
    await expect(page.locator("#yes")).to_contain_text("Used 0 of 20 times")
    await in_scope(tenant.pk, lambda: revoke_token(token, user=owner, reason="It refunds too much."))
    await expect(page.locator("#yes")).to_contain_text("It refunds too much.")
