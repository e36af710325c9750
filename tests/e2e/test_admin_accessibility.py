"""Can everybody use the administration? axe finds nothing on its pages, wide and light, and dark on a narrow phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from django.contrib import admin
from django.urls import reverse
from playwright.async_api import Page, ViewportSize

from apps.approvals.models import ApprovalPolicy
from apps.audit.models import AuditEntry
from apps.gates.models import Gate
from apps.tenants.models import ApiKey, Deployment, Membership, Retention
from apps.visitors.models import FormQuestion
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.axe import violations
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.platform.administration import page_of
from tests.platform.test_admin_walk import Asking, first_row, furnish

# One of each kind of page: rows that are evidence, rows with a course, rows with their own inlines, widgets or buttons.
MAIN = (ApiKey, ApprovalPolicy, AuditEntry, Deployment, FormQuestion, Gate, Membership, Retention)
# Django's forms import a stylesheet, which axe would read by a style of its own, and the policy would report that.
QUIET = {"preload": False}
DRESSES: list[tuple[Literal["light", "dark"], ViewportSize]] = [
    ("light", ViewportSize(width=1440, height=900)),
    ("dark", ViewportSize(width=320, height=700)),
]


def _pages(tenant: Any, owner: Any) -> Iterator[str]:
    """The index; of each model its list, an empty form where rows may be added, and its first row."""
    yield reverse("admin:index")
    for model in MAIN:
        yield page_of(model, "changelist")
        with tenant_scope(tenant):
            adds = admin.site._registry[model].has_add_permission(Asking(owner))  # type: ignore[arg-type]
        if adds:
            yield page_of(model, "add")
        if row := first_row(model, tenant):
            yield page_of(model, "change", row.pk)


async def _wrong(page: Page) -> list[str]:
    found = []
    for theme, size in DRESSES:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size(size)
        for each in await violations(page, **QUIET):
            found += [f"{theme}: {each['id']} at {node['target']}" for node in each["nodes"]]
        if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{theme}: scrolls sideways")
    return found


async def test_administration_is_for_everybody(web: str, open_page: OpenPage, tenant: Any, owner: Any) -> None:
    await in_thread(furnish, tenant)
    page = await log_in(open_page, web, owner, "/console/activity/")
    wrong = {}
    for address in await in_thread(lambda: list(_pages(tenant, owner))):
        answer = await page.goto(f"{web}{address}")
        assert answer is not None, f"{address}: {answer}"
        assert answer.ok, f"{address}: {answer}"
        if found := await _wrong(page):
            wrong[address] = found
    assert wrong == {}
