"""An owner writes a gate, tries it on recorded messages, puts it in force and takes it back, in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

from apps.gates.queries import active_gates
from apps.gates.services import save_gate, write_version
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.sessions import make_session, say
from tests.gates.test_rows import spec

NO_REFUNDS = r"\A(?!.*refund)"


def _said(deployment: Any) -> None:
    session = make_session(deployment)
    for text in ("Where is my parcel?", "I want a refund", "Thanks"):
        say(session, text)


def _two_versions(deployment: Any) -> None:
    save_gate(spec("words"), deployment_id=deployment.pk, note="The first")
    save_gate(spec("words", config={"pattern": NO_REFUNDS}), deployment_id=deployment.pk, note="No refunds by chat")


def _draft(deployment: Any) -> None:
    save_gate(spec("words"), deployment_id=deployment.pk)
    write_version(spec("words", config={"pattern": NO_REFUNDS}), deployment_id=deployment.pk)


def _in_force(deployment: Any) -> list[str]:
    return [gate.config["pattern"] for gate in active_gates(deployment.pk).value]


def _words_in_force(deployment: Any) -> list[list[str]]:
    return [gate.config["blocked_keywords"] for gate in active_gates(deployment.pk).value]


async def _opened(web: str, open_page: Any, owner: Any) -> Page:
    page: Page = await log_in(open_page, web, owner, "/console/gates/")
    await page.locator("#stages").get_by_role("link", name="words").click()
    await expect(page.locator("h1")).to_have_text("words")
    return page


async def test_gate_is_written_tried_and_put_in_force(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    await in_thread(_said, deployment)
    page = await log_in(open_page, web, owner, "/console/gates/")
    await page.get_by_role("link", name="Blocked words").click()
    await page.get_by_label("Words", exact=True).fill("refund")
    await page.get_by_label("Checks").select_option(label="Messages of visitors")
    says = "Messages of visitors: a text with a blocked word is blocked. Words in the list: 1."
    await expect(page.locator("#says")).to_have_text(says)
    await page.get_by_label("Chatbot").select_option(label=deployment.title)
    await page.get_by_label("Text to try").fill("A refund, please")
    await page.get_by_role("button", name="Try", exact=True).click()
    await expect(page.locator("#tried")).to_contain_text("Blocked")
    await page.get_by_role("button", name="Save and test").click()
    await expect(page.locator("#tried-title")).to_have_text("Version 1 would change 1 of 3 decisions")
    await expect(page.get_by_role("link", name="I want a refund")).to_be_visible()
    await page.get_by_role("button", name="Activate version 1").click()
    await expect(page.locator("#says-title")).to_have_text("Active: version 1")
    assert await in_scope(tenant, _words_in_force, deployment) == [["refund"]]


async def test_gate_is_rolled_back_with_one_press(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    await in_scope(tenant, _two_versions, deployment)
    page = await _opened(web, open_page, owner)
    await page.get_by_role("button", name="Roll back to version 1").click()
    await expect(page.locator("#says-title")).to_have_text("Active: version 3")
    assert await in_scope(tenant, _in_force, deployment) == ["."]


async def test_what_is_wrong_stands_beside_its_field(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    await in_scope(tenant, _draft, deployment)
    page = await _opened(web, open_page, owner)
    await page.get_by_role("link", name="Edit draft").click()
    await page.get_by_label("Regular expression").fill("(")
    await page.get_by_role("button", name="Save draft").click()
    await expect(page.locator(".problem")).to_contain_text("ot a regular expression")
    open_page.errors.clear()  # the browser reports the 422
    await expect(page.get_by_label("Regular expression")).to_have_value("(")


async def test_gates_are_found_from_any_page_by_owners(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/activity/")
    await page.locator("#rail-settings").click()
    await page.get_by_role("main").get_by_role("link", name="Gates").click()
    await expect(page.locator("h1")).to_have_text("Gates")


async def test_gates_are_written_without_the_pages_scripts(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/gates/new/pattern/", java_script_enabled=False)
    await page.get_by_label("Name", exact=True).fill("plain")
    await page.get_by_label("Regular expression").fill(".")
    await page.get_by_role("button", name="Save draft").click()
    await expect(page.locator("h1")).to_have_text("plain")
