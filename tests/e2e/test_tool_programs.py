"""An owner adds a program as a tool server in a real browser, asks what it offers, and takes a tool into use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.async_api import expect

from apps.toolservers.models import OutsideTool
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.skills import install, make_folder
from tests.fakes import program_server

SCRIPT = "scripts/server.py"


def _approve_skill(tenant: Any, folder: Path) -> None:
    files = {SCRIPT: Path(program_server.__file__ or "").read_text()}
    install(tenant, make_folder(folder, tools=[], files=files))


async def test_program_is_added_and_a_tool_of_it_taken_into_use(
    open_page: Any, web: str, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    await in_thread(_approve_skill, tenant, tmp_path)
    page = await log_in(open_page, web, owner, "/console/tool-servers/")
    form = page.locator("section", has=page.get_by_role("heading", name="Add a program"))
    await form.get_by_label("Name", exact=True).fill("crm")
    await form.get_by_label("Skill").select_option("test-desk")
    await form.get_by_label("Script").fill("scripts/none.py")
    await form.get_by_label("Arguments").fill("honest")
    await form.get_by_role("button", name="Add program").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(form.get_by_label("Arguments")).to_have_value("honest")
    await form.get_by_label("Script").fill(SCRIPT)
    await form.get_by_role("button", name="Add program").click()
    await page.get_by_role("button", name="Refresh tools").click()
    await page.get_by_role("button", name="Accept tool crm_look_up").click()
    await expect(page.get_by_text("In use").first).to_be_visible()
    assert await in_scope(tenant.pk, _states) == ["accepted"]
    open_page.errors[:] = [said for said in open_page.errors if "422" not in said]  # the browser tells of the refusal


def _states() -> list[str]:
    return list(OutsideTool.objects.values_list("state", flat=True))
