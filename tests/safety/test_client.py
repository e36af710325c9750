"""The Python client against our own REST: a stranger's agent under the loop."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kernel.tenancy import in_thread, tenant_scope
from tests.factories.safety import DANGER, HARMLESS, TO_CONFIRM, Agent, Api

sys.path.insert(0, str(Path(__file__).parents[2] / "clients" / "python" / "src"))

from silas_safety import Held, Loop, Refused, Stopped, Unreachable, hook


class OurRest(httpx2.AsyncBaseTransport):
    """Hands requests to Django's own test client."""

    def __init__(self, api: Api, *, broken: bool = False) -> None:
        self.api, self.broken = api, broken

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.broken:
            raise httpx2.ConnectError("away")
        said = await in_thread(self._asked, request)
        return httpx2.Response(said.status_code, content=said.content)

    def _asked(self, request: httpx2.Request) -> Any:
        headers = {"authorization": request.headers["authorization"]}
        return self.api.client.post(
            request.url.path, json.loads(request.content), content_type="application/json", headers=headers
        )


def under_the_loop(api: Api, session: Callable[[Loop], Awaitable[Any]], *, key: str = "", broken: bool = False) -> Any:
    async def run() -> Any:
        transport = OurRest(api, broken=broken)
        async with Loop("http://silas.test", key=key or api.key, agent="clerk", transport=transport) as loop:
            return await session(loop)

    return asyncio.run(run())


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def test_function_runs_after_a_go_and_a_plain_one_too(api: Api) -> None:
    async def session(loop: Loop) -> Any:
        @loop.guarded("reading page {number} of the manual")
        async def read(number: int) -> int:
            return number

        return await read(7), await loop.guarded("reading the manual")(lambda: "read")()

    assert under_the_loop(api, session) == (7, "read")


@pytest.mark.parametrize(("hint", "kind"), [(TO_CONFIRM, Held), (DANGER, Stopped)])
def test_function_does_not_run_after_a_no(api: Api, hint: str, kind: type[Held]) -> None:
    ran: list[int] = []

    async def session(loop: Loop) -> None:
        await loop.guarded(hint)(lambda: ran.append(1))()

    with pytest.raises(kind):
        under_the_loop(api, session)
    assert ran == []


def test_failure_of_an_action_makes_the_next_step_pause(api: Api) -> None:
    def break_down() -> None:
        raise KeyError

    async def session(loop: Loop) -> None:
        with pytest.raises(KeyError):
            await loop.guarded(HARMLESS)(break_down)()
        await loop.step(HARMLESS)

    with pytest.raises(Held, match="failed"):
        under_the_loop(api, session)


def test_unblocked_agent_goes_on(api: Api, tenant: Any) -> None:
    person = Agent(tenant, ref=f"api_key:{api.row.pk}")

    async def session(loop: Loop) -> Any:
        with pytest.raises(Stopped) as stop:
            await loop.step(DANGER)
        code = await in_thread(person.code)
        await loop.verify(stop.value.verification_id, code)
        return await loop.step(HARMLESS)

    assert under_the_loop(api, session)["continue"] is True


def test_agent_cannot_confirm_for_itself(api: Api) -> None:
    async def session(loop: Loop) -> None:
        with pytest.raises(Held):
            await loop.step(TO_CONFIRM)
        await loop.confirm(TO_CONFIRM, "")

    with pytest.raises(Refused, match="itself"):
        under_the_loop(api, session)


@pytest.mark.parametrize(("how", "refusal"), [({"key": "sk_" + "a" * 43}, Refused), ({"broken": True}, Unreachable)])
def test_nothing_begins_with_a_wrong_key_or_when_nobody_can_be_asked(
    api: Api, how: dict[str, Any], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        under_the_loop(api, lambda loop: loop.step(HARMLESS), **how)


def test_execution_ends_with_the_block(api: Api, tenant: Any) -> None:
    from apps.safety.models import Execution

    under_the_loop(api, lambda loop: loop.step(HARMLESS))
    with tenant_scope(tenant):
        assert Execution.objects.get().status == "completed"


def test_held_call_of_a_program_that_ended_passes_once_a_person_allowed_it(api: Api, tenant: Any) -> None:
    def again() -> Any:
        async def run() -> Any:
            stays = Loop("http://silas.test", key=api.key, agent="hook", stays=True, transport=OurRest(api))
            async with stays as loop:
                return await loop.step(TO_CONFIRM)

        return asyncio.run(run())

    with pytest.raises(Held):
        again()
    Agent(tenant, ref=f"api_key:{api.row.pk}").let_go()
    assert again()["continue"] is True
    with pytest.raises(Held):
        again()


def test_hook_says_no_when_nobody_can_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SILAS_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SILAS_SAFETY_KEY", "sk_x")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"tool_name": "bash", "tool_input": {"command": "ls"}}'))
    assert hook.main() == 2 and "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize("said", ["", "[]", "nonsense"])
def test_hook_says_no_to_what_is_no_call(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert hook.main() == 2


def test_hook_tells_commands_as_they_are() -> None:
    assert hook.hint_of({"tool_name": "bash", "tool_input": {"command": "rm -rf /"}}) == "bash: rm -rf /"
