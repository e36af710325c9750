"""Each of the eight escalations, walked in the widget and seen by staff: what is read, who is asked, what waits.

One company whose goal file has a gate for each action; it speaks with `builtin:grounded`, over a real web process.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import expect

from apps.audit.models import AuditEntry
from apps.knowledge.services import ingest
from apps.tenants.hours import DAYS
from apps.tenants.models import Deployment
from apps.work import services
from kernel.clock import now
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.calls import PlannedCall, call_block
from llm.offline import phrases
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.e2e.widget import Widget, opened
from tests.factories.skills import acting_tool, install, make_folder, read_tool
from tests.factories.tenants import make_deployment

DOCUMENT = """# House rules

## 1. Words

### 1.1 The vault word
The vault word of this house is swordfish.

### 1.2 The alarm word
The alarm word of this house is marzipan.

### 1.3 Opening hours
The opening hours are from nine to five on working days.
"""
CALL = call_block(PlannedCall("act", {"order": "$conversation"}))


def _gate(name: str, word: str, *, on: str = "every_user_message") -> str:
    """Objects to one word; the escalation has the name of its action."""
    config = f"{{pattern: '(?s)\\A(?!.*{word})'}}"
    return f"  - {{name: {name}_gate, on: {on}, type: regex, config: {config}, on_block: {name}}}"


GOAL = f"""---
id: house
type: goal
title: Look after the house
schedule: always_on
skills: [test-desk]
gates:
{_gate("respond", "pineapple")}
{_gate("person", "cucumber")}
{_gate("queue", "aubergine")}
{_gate("reported", "radish")}
{_gate("task", "turnip")}
{_gate("again", "parsnip")}
{_gate("softly", "swordfish", on="every_agent_response")}
{_gate("hushed", "marzipan", on="every_agent_response")}
access_levels:
  public: {{tools: [knowledge_search, look]}}
escalation:
  respond: {{action: respond, message: We do not talk about fruit here.}}
  person: {{action: escalate_human, message: A person will read this.}}
  queue: {{action: transfer_to_queue, queue: second_line, message: The second line will read this.}}
  reported: {{action: report}}
  task:
    action: spawn_task
    message: Somebody will look into the turnip.
    fallback: queue
    instruction: |
{chr(10).join("      " + line for line in CALL.splitlines())}
  again: {{action: retry, max_retries: 2, fallback: respond}}
  softly: {{action: suppress_and_rephrase, instruction: Say it without the word., max_retries: 2, fallback: queue}}
  hushed: {{action: suppress_and_escalate, message: Let me get somebody for this., fallback: queue}}
---
Be kind.
"""


def _made(tenant: Any, folder: Path) -> None:
    install(tenant, make_folder(folder, tools=[read_tool(), acting_tool()]))
    (folder / "rules.md").write_text(DOCUMENT)
    ingest(tenant, collection="rules", paths=[folder / "rules.md"], root=folder)
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        services.install_goal(GOAL, deployment=deployment, requested_by="user:test")


class House:
    def __init__(self, web: str, open_page: OpenPage, tenant: Any) -> None:
        self.web, self.open_page, self.tenant = web, open_page, tenant

    async def visitor(self) -> Widget:
        return await opened(await self.open_page(f"{self.web}/demo/{self.tenant.slug}/"))

    async def hears(self, text: str, expected: str) -> Widget:
        """A new visitor says `text` and reads `expected`, and nothing else."""
        widget = await self.visitor()
        await widget.say(text)
        await expect(widget.bot).to_have_text([expected])
        return widget

    async def audit(self, event: str) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            found = AuditEntry.objects.filter(event=event).order_by("seq").values_list("data", flat=True)
            return [json.loads(data) for data in found]

        return await in_scope(self.tenant.pk, read)


@pytest_asyncio.fixture(loop_scope="session")
async def house(web: str, tenant: Any, tmp_path: Path, open_page: OpenPage) -> House:
    await in_thread(_made, tenant, tmp_path)
    return House(web, open_page, tenant)


async def test_respond_says_what_its_author_wrote(house: House) -> None:
    await house.hears("Do you like pineapple?", "We do not talk about fruit here.")
    assert await house.audit("gate_blocked") == [
        {"gate": "respond_gate", "code": "no_match", "first": True, "sender": "visitor"}
    ]


async def test_escalate_human_is_seen_by_staff_with_what_it_is_about(house: House, agent: Any) -> None:
    widget = await house.hears("My cucumber is broken", "A person will read this.")
    page = await log_in(house.open_page, house.web, agent, "/console/inbox/?tab=unassigned")
    await page.locator(".list li a").first.click()
    await expect(page.locator("#handover")).to_contain_text("My cucumber is broken")
    await page.get_by_role("button", name="Take over").click()
    await expect(widget.owner).to_contain_text("is replying to you now")


async def test_transfer_to_queue_waits_in_the_queue_of_that_name(house: House, agent: Any) -> None:
    await house.hears("My aubergine is broken", "The second line will read this.")
    page = await log_in(house.open_page, house.web, agent, "/console/inbox/?tab=unassigned")
    await expect(page.locator(".list li").first).to_contain_text("second_line")
    await page.locator(".list li a").first.click()
    await expect(page.locator("#handover")).to_contain_text("second_line")


async def test_suppress_and_rephrase_says_it_in_other_words(house: House) -> None:
    widget = await house.hears("What is the vault word?", f"{phrases.MAY_NOT_SAY} {phrases.OFFER}")
    await expect(widget.log).not_to_contain_text("swordfish")
    assert [entry.get("again") for entry in await house.audit("gate_escalated")] == ["1"]


async def test_suppress_and_escalate_says_its_own_words_and_hands_on(house: House, agent: Any) -> None:
    widget = await house.hears("What is the alarm word?", "Let me get somebody for this.")
    await expect(widget.log).not_to_contain_text("marzipan")
    page = await log_in(house.open_page, house.web, agent, "/console/inbox/?tab=unassigned")
    await expect(page.locator(".list li").first).to_contain_text("second_line")


async def test_report_reaches_the_owner(house: House, owner: Any) -> None:
    await house.hears("Here is a radish", "I can't help with that. How else can I assist you?")
    page = await log_in(house.open_page, house.web, owner, "/console/activity/")
    await expect(page.locator(".timeline")).to_contain_text("Policy block reported to you")


async def test_spawn_task_waits_for_its_approval_in_the_review(house: House, approver: Any) -> None:
    widget = await house.hears("Here is a turnip", "Somebody will look into the turnip.")
    await expect(widget.work).to_contain_text("Waiting for our team to confirm")
    page = await log_in(house.open_page, house.web, approver, "/console/review/")
    await expect(page.locator("#card")).to_contain_text("Change ")
    await page.keyboard.press("d")
    await page.keyboard.press("d")
    await page.goto(f"{house.web}/console/activity/")  # a page that is left sends the decision
    await expect(widget.work).to_contain_text("Nothing was changed")


async def test_retry_is_made_as_often_as_written_and_falls_back(house: House) -> None:
    await house.hears("Here is a parsnip", "We do not talk about fruit here.")
    assert len(await house.audit("gate_blocked")) == 3


async def test_visitor_who_wants_a_person_while_nobody_is_there_reads_when_somebody_is_back(house: House) -> None:
    await in_scope(house.tenant.pk, _closed_all_but_a_minute)
    widget = await house.visitor()
    await widget.say("My cucumber is broken")
    await expect(widget.bot.first).to_have_text("A person will read this.")
    await expect(widget.bot.nth(1)).to_contain_text("We'll be back ")


def _closed_all_but_a_minute() -> None:
    """The minute is half a week away, whenever this runs."""
    day = DAYS[(now().weekday() + 3) % 7]
    Deployment.objects.update(opening_hours={day: "12:00-12:01"})


async def test_conversation_goes_on_after_a_block(house: House) -> None:
    widget = await house.hears("Do you like pineapple?", "We do not talk about fruit here.")
    await widget.say("What are your opening hours?")
    await expect(widget.bot.nth(1)).to_contain_text("nine to five")
