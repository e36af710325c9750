"""An agent is stopped, a person reads the code, the agent goes on: the whole way, in a real browser and over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
from playwright.async_api import expect

from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.factories.safety import DANGER, HARMLESS, Api


async def test_block_is_lifted_by_the_code_that_the_operator_reads(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    api = await in_thread(Api, tenant)
    headers = {"authorization": f"Bearer {api.key}"}
    page = await log_in(open_page, web, owner, "/console/safety/")
    await expect(page.get_by_text("No agents are waiting")).to_be_visible()
    async with httpx2.AsyncClient(base_url=f"{web}/api/v1/safety/", headers=headers) as agent:

        async def call(operation: str, **params: str) -> Any:
            answer = await agent.post("all", json={"operation": operation, "params": params})
            return answer.json()["data"]

        async def step(hint: str) -> Any:
            said = await call("record_execution_step", element_name="clerk", next_action_hint=hint)
            return said["autonomy"]

        await call("execute_agent", element_name="clerk")
        stopped = await step(DANGER)
        assert stopped["stopped"] is True
        await page.get_by_role("button", name="Show code").click()
        code = await page.locator("#secret").inner_text()
        challenge = stopped["notifications"][0]["metadata"]["verificationId"]
        assert (await call("verify_challenge", challenge_id=challenge, code=code))["verified"] is True
        assert (await step(HARMLESS))["continue"] is True
