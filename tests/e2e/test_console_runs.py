"""A task is set up, run and read; another is stopped while it is under way; and the money is there to be seen."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from playwright.async_api import Page, expect

from apps.autonomy import rules
from apps.autonomy.guarded_client import Braked, GuardedClient
from apps.autonomy.jobs import build_job
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services import session_run
from apps.autonomy.services.session_end import Ending
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.guard.enums import Intent
from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.factories.autonomy import House, make_house
from tests.factories.bus import lease_any
from tests.factories.guard import change_run

FINDING = {"title": "Two prices differ", "content": "The lamp costs 20 here and 25 there.", "severity": "warn"}


@dataclass(frozen=True)
class UnderWay:
    """A session in a worker's hands, which reach out when the test says so."""

    house: House
    delivery: Delivery
    session: AutonomousSession

    def call(self) -> None:
        """The next guarded call; when it is braked, the session ends as the brake says."""
        job = self.house.do(build_job, self.house.session(self.session.pk), self.delivery.lease)
        hand = GuardedClient(job, phase=rules.PHASES[2])
        try:
            asyncio.run(hand.call(Intent.EMIT_FINDING, "emit_finding", FINDING))
        except Braked as brake:
            ends = rules.ending_for(brake.code)
            assert ends is not None
            self.house.do(session_run.conclude_session, self.delivery, self.session.pk, Ending(*ends))


def _begin(house: House) -> UnderWay:
    """In drafting, with a finding written down, money spent and some set aside."""
    session = house.run_now(house.task(name="Compare the price lists"))
    house.tick()
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    delivery = Delivery(house.tenant.pk, lease, "test")
    house.do(session_run.begin_session, delivery)
    for phase in rules.PHASES[1:3]:
        house.do(session_run.enter_phase, session.pk, phase, outcome="done", state=None)
    begun = UnderWay(house, delivery, house.session(session.pk))
    begun.call()
    change_run(begun.session.run, cost_total=Decimal("0.1234"), cost_reserved=Decimal("0.05"))
    return begun


async def _press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).click()


async def test_task_is_set_up_and_run_and_leaves_its_receipt(web: str, open_page: Any, tenant: Any) -> None:
    house = await in_thread(make_house, tenant)
    page = await log_in(open_page, web, house.owner, "/console/runs/")
    await page.get_by_role("link", name="Create an automation").click()
    await page.get_by_label("Name", exact=True).fill("Nightly look at returns")
    await page.get_by_label("Instructions").fill("Within how many days can a coat be returned?")
    await page.get_by_label("Trigger").select_option("cron")
    await page.get_by_label("Schedule").fill("0 2 * * *")
    await expect(page.locator("#when-said b")).to_contain_text("At 02:00 every day")
    await expect(page.locator("#when-said time")).to_have_count(3)
    await page.get_by_label("Dollars", exact=True).fill("0.25")
    await _press(page, "Create automation")
    await expect(page.locator("h1")).to_have_text("Nightly look at returns")
    await _press(page, "Run now")
    await expect(page.locator("#how-title")).to_have_text("Queued.")
    await in_thread(house.finish)
    await expect(page.locator("#how-title")).to_have_text("Completed.")
    await expect(page.locator(".money")).to_have_text("$0.00 of $0.25")
    await expect(page.locator(".stepper .done")).to_have_count(5)


async def test_session_under_way_is_stopped_and_its_receipt_says_so(web: str, open_page: Any, tenant: Any) -> None:
    house = await in_thread(make_house, tenant)
    begun = await in_thread(_begin, house)
    page = await log_in(open_page, web, house.owner, "/console/runs/")
    await expect(page.locator(".money")).to_have_text("$0.1234 of $0.50 and $0.05 reserved")
    await page.get_by_role("link", name="Compare the price lists").first.click()
    await expect(page.locator(".stepper .now b")).to_have_text("Draft")
    await _press(page, "Stop Compare the price lists")
    await expect(page.locator("#how-title")).to_have_text("Stopping before the next call.")
    await in_thread(begun.call)
    await expect(page.locator("#how-title")).to_have_text("Stopped by a person.")
    await expect(page.locator(".stepper .bad b")).to_have_text("Draft")
    await expect(page.locator(".findings b").first).to_have_text("Two prices differ")
    await expect(page.locator(".money")).to_contain_text("$0.1234 of $0.50")
    await expect(page.get_by_role("button", name="Stop Compare the price lists")).to_have_count(0)


async def test_runs_work_without_a_script(web: str, open_page: Any, tenant: Any) -> None:
    house = await in_thread(make_house, tenant)
    session = await in_thread(lambda: house.run_now(house.task(name="Look at it")))
    page = await log_in(open_page, web, house.owner, f"/console/runs/{session.pk}/", java_script_enabled=False)
    await _press(page, "Cancel Look at it")
    await expect(page.locator("#how-title")).to_have_text("Cancelled before it started.")
