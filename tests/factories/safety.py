"""Agents under the safety loop, for tests: with services, and over HTTP with a key of their own."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apps.safety import services
from apps.safety.models import Hold
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.challenges import show_code
from apps.safety.services.confirmations import allow, issue_token
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser

HARMLESS = "reading the manual of the printer"
TO_CONFIRM = "update the address of order 4711"
TO_VERIFY = "delete the user account 4711"
DANGER = "drop table users"


class Agent:
    """One agent of a tenant; each call is one transaction, as over the wire."""

    def __init__(self, tenant: Any, name: str = "clerk", *, ref: str = "", may_confirm: bool = False) -> None:
        self.tenant, self.name = tenant, name
        self.principal = Principal(ref or f"api_key:{uuid4()}", may_confirm)

    def do(self, service: Any, **given: Any) -> Reply:
        with tenant_scope(self.tenant):
            reply: Reply = service(self.principal, **given)
            return reply

    def begin(self) -> Reply:
        return self.do(services.execute_agent, name=self.name)

    def report(self, hint: str = HARMLESS, **given: Any) -> dict[str, Any]:
        """The directive."""
        return data(self.do(services.record_step, name=self.name, hint=hint, **given))["autonomy"]  # type: ignore[no-any-return]

    def verify(self, challenge_id: str, code: str) -> Reply:
        return self.do(services.verify_challenge, challenge_id=challenge_id, code=code)

    def confirm(self, operation: str, token: str = "", **given: Any) -> Reply:
        return self.do(services.confirm_operation, operation=operation, token=token, **given)

    def hold(self) -> Hold:
        """What holds it now."""
        with tenant_scope(self.tenant):
            found: Hold = Hold.objects.filter(principal=self.principal.ref, state="open").get()
            return found

    def end(self, outcome: str = "success") -> Reply:
        return self.do(services.complete_execution, name=self.name, outcome=outcome)

    def abort(self) -> Reply:
        return self.do(services.abort_execution, name=self.name)

    def let_go(self) -> None:
        """A person at the console lets it go on."""
        with tenant_scope(self.tenant):
            allow(self.hold().pk, actor="user:test")

    def token(self) -> str:
        """What a person at the console hands to it."""
        with tenant_scope(self.tenant):
            return issue_token(self.hold().pk, actor="user:test")

    def code(self) -> str:
        """What a person reads at the console."""
        with tenant_scope(self.tenant):
            return show_code(self.hold().pk, actor="user:test")


def started(tenant: Any, name: str = "clerk", **given: Any) -> Agent:
    agent = Agent(tenant, name, **given)
    agent.begin()
    return agent


def data(reply: Reply) -> dict[str, Any]:
    assert isinstance(reply, Success), reply
    return reply.data  # type: ignore[no-any-return]


def code_of(reply: Reply) -> str:
    assert isinstance(reply, Failure), reply
    return reply.code


def challenge_of(directive: dict[str, Any]) -> str:
    return next(
        each["metadata"]["verificationId"]
        for each in directive["notifications"]
        if "verificationId" in each["metadata"]
    )


def policy(tenant: Any, principal: str = "", **content: Any) -> None:
    with tenant_scope(tenant):
        services.write_policy(content, principal=principal, actor="user:test")


class Api:
    """Somebody's agent, over HTTP."""

    def __init__(self, tenant: Any, *scopes: KeyScope) -> None:
        with tenant_scope(tenant):
            made = create_api_key("Agent", scopes=scopes or (KeyScope.SAFETY_AGENT,))
        self.key, self.row, self.client = made.key, made.row, browser(None)

    def post(self, body: Any, surface: str = "all", **headers: str) -> Any:
        return self.client.post(
            f"/api/v1/safety/{surface}",
            body,
            content_type="application/json",
            headers={"authorization": f"Bearer {self.key}", **headers},
        )

    def call(self, operation: str, surface: str = "all", **params: Any) -> Any:
        return self.post({"operation": operation, "params": params}, surface)
