"""One execution of one agent: entered, asked before every action, left.

Anything but a clear go keeps the action from running, a platform that cannot be reached included.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import httpx2

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST = 8000
_SECONDS = 10.0


class Refused(Exception):
    """The platform refused an operation; `code` is its own word for why."""

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = details or {}


class Held(Exception):
    """Do not act: a person has to look first. `directive` is what the loop said."""

    def __init__(self, directive: dict[str, Any]) -> None:
        super().__init__(directive.get("reason") or "A person has to look at this first.")
        self.directive = directive

    @property
    def verification_id(self) -> str:
        """Of the challenge whose code lets the agent go on; empty when no code is asked for."""
        notices = self.directive.get("notifications") or []
        found = (each.get("metadata", {}).get("verificationId") for each in notices)
        return next((each for each in found if each), "")


class Stopped(Held):
    """Cease everything: the agent is blocked until a person lifts it."""


class Unreachable(Held):
    """No approver could be asked, so nothing may happen."""

    def __init__(self, why: str) -> None:
        super().__init__({"continue": False, "factors": [why], "reason": f"The safety loop cannot be reached: {why}"})


class Loop:
    """`async with Loop(url, key=..., agent=...) as loop`: an execution from its start to its end.

    `stays`: for programs that end between two actions. It goes on with the execution that the agent has, begins one
    where there is none, and leaves it open: a person's yes to a held action is for the next program that tries it. The
    platform ends what stays silent.
    """

    def __init__(
        self, url: str, *, key: str, agent: str, stays: bool = False, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=_SECONDS, transport=transport)
        self._agent = agent
        self._stays = stays
        self._outcome = ""
        self._asking = asyncio.Lock()
        self.execution_id = ""

    async def __aenter__(self) -> Self:
        if self._stays:
            return self
        try:
            await self._begin()
        except BaseException:
            await self._http.aclose()
            raise
        return self

    async def _begin(self) -> None:
        begun = await self._call("execute", "execute_agent", element_name=self._agent)
        self.execution_id = begun["execution_id"]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outcome = "success" if kind is None else "failure"
        try:
            if not self._stays:
                await self._call("execute", "complete_execution", **self._mine(), outcome=outcome)
        except (Refused, Unreachable):
            pass  # a stopped agent ends nothing; the platform ends what stays silent
        finally:
            await self._http.aclose()

    async def step(self, hint: str, *, outcome: str = "") -> dict[str, Any]:
        """Report the intended action. Returns the directive of a go; raises `Stopped` or `Held`."""
        async with self._asking:
            said = outcome or self._outcome
            given = {"next_action_hint": hint[:_LONGEST], **({"outcome": said} if said else {})}
            if len(hint) > _LONGEST:
                raise Held({"continue": False, "factors": [], "reason": "The hint is too long to be judged."})
            answer = await self._reported(given)
            self._outcome = ""
        directive: dict[str, Any] = answer.get("autonomy") or {}
        if directive.get("stopped"):
            raise Stopped(directive)
        if directive.get("continue") is not True:
            raise Held(directive)
        return directive

    async def _reported(self, given: dict[str, str]) -> dict[str, Any]:
        try:
            return await self._call("create", "record_execution_step", **self._mine(), **given)
        except Refused as no:
            if not self._stays or no.code != "NOT_FOUND_RESOURCE":
                raise
        await self._begin()
        return await self._call("create", "record_execution_step", **self._mine(), **given)

    def guarded(self, hint: str) -> Callable[[Callable[P, Any]], Callable[P, Awaitable[Any]]]:
        """A function that asks first. `hint` is filled with the arguments of each call."""

        def wrap(tool: Callable[P, Any]) -> Callable[P, Awaitable[Any]]:
            signature = inspect.signature(tool)

            @functools.wraps(tool)
            async def asked(*args: P.args, **kwargs: P.kwargs) -> Any:
                bound = signature.bind(*args, **kwargs)
                bound.apply_defaults()
                await self.step(hint.format(**bound.arguments))
                try:
                    result = tool(*args, **kwargs)
                    done = await result if inspect.isawaitable(result) else result
                except Exception:
                    self._outcome = "failure"
                    raise
                self._outcome = self._outcome or "success"
                return done

            return asked

        return wrap

    async def verify(self, challenge_id: str, code: str) -> dict[str, Any]:
        """Give in the code that a person read at the console. Raises `Refused`."""
        return await self._call("create", "verify_challenge", challenge_id=challenge_id, code=code)

    async def confirm(self, operation: str, token: str) -> dict[str, Any]:
        """Give in the token that a person handed out for this action. Raises `Refused`."""
        given = {"operation": operation, "confirmation_token": token}
        return await self._call("execute", "confirm_operation", **given)

    def _mine(self) -> dict[str, str]:
        return {"element_name": self._agent, **({"execution_id": self.execution_id} if self.execution_id else {})}

    async def _call(self, endpoint: str, operation: str, /, **params: Any) -> dict[str, Any]:
        try:
            sent = {"operation": operation, "params": params}
            response = await self._http.post(f"/api/v1/safety/{endpoint}", json=sent)
            said = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise Unreachable(type(error).__name__) from error
        if response.status_code >= 500 or not isinstance(said, dict):
            raise Unreachable(f"it answered {response.status_code}")
        if not said.get("success"):
            error = said.get("error") or {}
            raise Refused(str(error.get("code")), str(error.get("message")), error.get("details"))
        return dict(said["data"])
