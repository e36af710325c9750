"""Take in a skill that was written for another platform, in a real browser: upload, report, yes in Review, use."""

from __future__ import annotations

import asyncio
import io
import zipfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from playwright.async_api import Page, expect

from apps.guard import services as guard
from apps.guard.enums import Intent, Origin
from apps.guard.schemas import Call, Done
from apps.skills import queries
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion
from kernel.tenancy import in_scope
from tests.e2e.console import log_in

FOLDER = Path(__file__).parents[1] / "data" / "claude-style" / "word-count"
PATIENCE = 30_000


def archived() -> bytes:
    """Our own small skill as people hand such folders on."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for file in sorted(FOLDER.rglob("*")):
            if file.is_file():
                archive.write(file, f"word-count/{file.relative_to(FOLDER)}")
    return out.getvalue()


async def until(tenant: Any, status: SkillStatus, **fields: Any) -> SkillVersion:
    """The version once it is there; web processes try skills when nobody looks."""
    for _ in range(300):
        found = await in_scope(
            tenant.pk, lambda: SkillVersion.objects.filter(name="word-count", status=status, **fields).first()
        )
        if found is not None:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(f"the skill never became {status}")


async def approve(page: Page) -> None:
    """Whatever gesture its risk asks for."""
    slide = page.get_by_role("slider")
    if await slide.count():
        await slide.focus()
        await slide.press("End")
    await page.locator("form#answer button[value=approve], footer button[value=approve]").first.click()
    confirm = page.get_by_role("button", name="Confirm")
    if await slide.count() == 0:
        await confirm.or_(page.locator("#decided")).first.wait_for(timeout=PATIENCE)
        if await confirm.count():
            await confirm.first.click()
    await expect(page.locator("#decided")).to_be_visible(timeout=PATIENCE)


async def test_skill_of_another_platform_is_taken_in_read_approved_and_used(
    web: str, worker: None, open_page: Any, tenant: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/skills/")
    await page.get_by_role("link", name="Add a skill").first.click()
    file = {"name": "word-count.zip", "mimeType": "application/zip", "buffer": archived()}
    await page.get_by_label("Archive or signed package").set_input_files(file)  # type: ignore[arg-type]
    await page.get_by_role("button", name="Check and request approval").first.click()
    await expect(page.locator(".pagehead h1")).to_contain_text("Word count", timeout=PATIENCE)
    await expect(page.locator("#main")).to_contain_text("allowed-tools")
    asked = await until(tenant, SkillStatus.PROPOSED, card_id__isnull=False)
    await page.goto(f"{web}/console/review/{asked.card_id}/")
    await expect(page.locator("#card")).to_contain_text("scripts/count_words.py")
    await expect(page.locator("#card")).to_contain_text("allowed-tools")
    await approve(page)
    used = await until(tenant, SkillStatus.ACTIVE)
    assert (await call(tenant, used)).value["words"] == 3


async def call(tenant: Any, version: SkillVersion) -> Done:
    """As a conversation makes it: through the guard's door."""

    def opened() -> tuple[Any, str]:
        tool = queries.tools_for([version.name])[0]
        return guard.open_run(Origin.CHAT, uuid4(), deployment_id=None).ref, tool.name

    run, tool = await in_scope(tenant.pk, opened)
    asked = Call(tool=tool, args={"text": "three little words"}, access=frozenset({tool}))
    outcome = await guard.guarded_call(run, Intent.RUN_SKILL, asked, context={"customer": "", "skills": ["word-count"]})
    assert isinstance(outcome, Done), outcome
    return outcome
