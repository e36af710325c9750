"""Reports in one round trip: they say and leave what a report does, and give way to whatever speaks against one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from django.db import connection

from apps.audit.models import AuditEntry
from apps.audit.queries import Chain, read_chain
from apps.audit.rules import inspect
from apps.safety import services
from apps.safety.models import Execution, Step
from apps.safety.serving import PATH, with_safety
from apps.tenants.enums import KeyScope
from apps.tenants.services import revoke_api_key
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.safety import DANGER, HARMLESS, TO_CONFIRM, Agent, Api, data, policy, started
from tests.rivals import interrupted, race
from tests.safety.test_mcp import nobody


class Quick(Agent):
    """Reports in one round trip, or not at all."""

    key: UUID | None = None

    def at_once(self, hint: str = HARMLESS, **given: Any) -> Any:
        return services.record_step_at_once(
            self.tenant.pk, self.principal, key=self.key, name=self.name, hint=hint, **given
        )


@pytest.fixture
def clerk(tenant: Any) -> Quick:
    agent = Quick(tenant)
    agent.begin()
    return agent


def steps(agent: Agent) -> list[dict[str, Any]]:
    """What is kept of its reports, oldest first, but for ids and times."""
    with tenant_scope(agent.tenant):
        mine = Step.objects.filter(execution__agent__principal=agent.principal.ref).order_by("seq")
        return list(
            mine.values("seq", "hint", "description", "outcome", "mode", "decision", "stage", "tier", "factors")
        )


def entries(agent: Agent) -> list[str]:
    with tenant_scope(agent.tenant):
        mine = AuditEntry.objects.filter(actor=agent.principal.ref, event="safety_judged").order_by("seq")
        return list(mine.values_list("data", flat=True))


@contextmanager
def statements() -> Iterator[list[str]]:
    seen: list[str] = []

    def see(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(see):
        yield seen


@pytest.mark.parametrize(
    "content",
    [{}, {"max_steps": 0}, {"mode": "monitoring"}, {"mode": "logging"}, {"auto_approve": ["reading*"]}],
)
def test_it_says_and_leaves_what_a_report_does(clerk: Quick, content: dict[str, Any]) -> None:
    policy(clerk.tenant, **content)
    usual = started(clerk.tenant)
    said = {"description": "looked", "outcome": "success"}
    for _ in range(2):
        quick, slow = (
            data(clerk.at_once(**said)),
            data(usual.do(services.record_step, name="clerk", hint=HARMLESS, **said)),
        )
        assert (quick["autonomy"], quick["progress"]) == (slow["autonomy"], slow["progress"])
        assert quick.keys() == slow.keys()
    assert steps(clerk) == steps(usual) and len(steps(clerk)) == 2
    assert entries(clerk) == entries(usual) and '"seq":2' in entries(clerk)[1]


def test_it_is_one_statement_once_the_policy_is_known(clerk: Quick) -> None:
    clerk.at_once()
    with statements() as seen:
        assert clerk.at_once() is not None
    assert len(seen) == 1


def test_the_audit_log_holds(clerk: Quick) -> None:
    """Reports in one round trip, others between them, and rivals."""
    clerk.at_once()
    clerk.report()
    race(*[lambda: clerk.at_once()] * 4, *[lambda: clerk.report()] * 2)
    assert [each["seq"] for each in steps(clerk)] == list(range(1, 9))
    subjects = {f"safety_execution:{pk}" for pk in _executions(clerk)}
    with tenant_scope(clerk.tenant):
        assert set(AuditEntry.objects.filter(event="safety_judged").values_list("subject", flat=True)) == subjects
    chain = Chain("x", clerk.tenant.pk)
    found = read_chain(
        chain, lambda seen: inspect(seen.entries, chain=str(chain.id), head=seen.head, checkpoints=(), keys={})
    )
    assert found.broken is None and found.entries >= 9


def test_block_that_is_set_while_it_waits_holds(clerk: Quick) -> None:
    clerk.at_once()

    def block(meet: Callable[[], None]) -> None:
        with tenant_scope(clerk.tenant):
            services.record_step(clerk.principal, name="clerk", hint=DANGER)
            meet()

    assert interrupted(block, clerk.at_once) == [None, None]
    assert len(steps(clerk)) == 2


def _executions(agent: Agent) -> list[UUID]:
    with tenant_scope(agent.tenant):
        return list(Execution.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("hint", [TO_CONFIRM, DANGER])
def test_what_a_person_decides_is_not_its_business(clerk: Quick, hint: str) -> None:
    assert clerk.at_once(hint) is None and steps(clerk) == []


def test_step_limit_holds(clerk: Quick) -> None:
    policy(clerk.tenant, max_steps=2)
    assert [bool(clerk.at_once()) for _ in range(3)] == [True, True, False]
    assert clerk.report()["continue"] is False


def test_pause_holds(clerk: Quick) -> None:
    clerk.at_once()
    clerk.report(TO_CONFIRM)
    assert clerk.at_once() is None and len(steps(clerk)) == 2


def test_block_of_another_of_its_principal_holds(clerk: Quick) -> None:
    clerk.at_once()
    started(clerk.tenant, "other", ref=clerk.principal.ref).report(DANGER)
    assert clerk.at_once() is None


def test_block_of_anybody_is_told(clerk: Quick) -> None:
    started(clerk.tenant).report(DANGER)
    assert clerk.at_once() is None and clerk.report()["notifications"]


def test_policy_that_was_written_since_holds_at_once(clerk: Quick) -> None:
    clerk.at_once()
    policy(clerk.tenant, clerk.principal.ref, deny=["reading*"])
    assert clerk.at_once() is None and len(steps(clerk)) == 1
    policy(clerk.tenant, clerk.principal.ref)
    started(clerk.tenant)
    assert data(clerk.at_once())["progress"] == {"current": 2}


def test_policy_of_all_holds_again_when_the_own_is_taken_back(clerk: Quick) -> None:
    policy(clerk.tenant, deny=["reading*"])
    policy(clerk.tenant, clerk.principal.ref)
    assert clerk.at_once() is not None
    with tenant_scope(clerk.tenant):
        services.take_back(clerk.principal.ref, actor="user:test")
    assert clerk.at_once() is None and len(steps(clerk)) == 1


def test_execution_that_has_ended_takes_no_step(clerk: Quick) -> None:
    clerk.at_once()
    clerk.do(services.abort_execution, name="clerk")
    assert clerk.at_once() is None and clerk.at_once(execution_id=uuid4()) is None


def test_execution_of_another_tenant_takes_no_step(clerk: Quick, other_tenant: Any) -> None:
    clerk.at_once()
    thief = Quick(other_tenant, ref=clerk.principal.ref)
    assert thief.at_once(execution_id=_executions(clerk)[0]) is None
    thief.begin()
    assert thief.at_once(execution_id=_executions(clerk)[0]) is None and len(steps(clerk)) == 1


class TestKey:
    @pytest.fixture
    def api(self, tenant: Any) -> Api:
        return Api(tenant)

    @pytest.fixture
    def keyed(self, tenant: Any, api: Api) -> Quick:
        agent = Quick(tenant, ref=f"api_key:{api.row.pk}")
        agent.key = api.row.pk
        agent.begin()
        assert agent.at_once() is not None
        return agent

    def test_that_is_revoked_reports_nothing(self, keyed: Quick, api: Api) -> None:
        with tenant_scope(keyed.tenant):
            revoke_api_key(api.row)
        assert keyed.at_once() is None and len(steps(keyed)) == 1

    def test_of_another_tenant_reports_nothing(self, keyed: Quick, other_tenant: Any) -> None:
        keyed.key = Api(other_tenant).row.pk
        assert keyed.at_once() is None and len(steps(keyed)) == 1

    def test_for_something_else_reports_nothing(self, keyed: Quick) -> None:
        keyed.key = Api(keyed.tenant, KeyScope.SAFETY_CONFIRM).row.pk
        assert keyed.at_once() is None and len(steps(keyed)) == 1

    @pytest.mark.parametrize("method", ["tools/call", "tools/list", "initialize"])
    def test_that_is_revoked_is_told_nothing_more(self, keyed: Quick, api: Api, method: str) -> None:
        before, after = _statuses(api, keyed, method)
        assert (before, after) == (200, 401)


def _statuses(api: Api, keyed: Quick, method: str) -> tuple[int, int]:
    """Of the same request twice, its key revoked between them."""
    arguments = {
        "operation": "record_execution_step",
        "params": {"element_name": "clerk", "next_action_hint": HARMLESS},
    }
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    params = {"tools/call": {"name": "mcp_aql_create", "arguments": arguments}, "initialize": hello}.get(method, {})
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"authorization": f"Bearer {api.key}", "accept": "application/json, text/event-stream"}

    def revoke() -> None:
        with tenant_scope(keyed.tenant):
            revoke_api_key(api.row)

    async def run() -> tuple[int, int]:
        transport = httpx2.ASGITransport(app=with_safety(nobody))
        async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
            first = await http.post(f"http://silas.test{PATH}", json=body)
            await in_thread(revoke)
            second = await http.post(f"http://silas.test{PATH}", json=body)
            assert b"result" not in second.content
            return first.status_code, second.status_code

    return asyncio.run(run())
