"""A reached limit sends a conversation to the built-in model rather than to silence, whosever limit it is."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from uuid import uuid5

import pytest

from apps.audit.models import AuditEntry
from apps.guard.models import Budget, SpendingPolicy
from apps.sessions import turn
from apps.sessions.models import ChatSession, Turn
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.guard import make_budget
from tests.factories.sessions import answered, make_session, say
from tests.factories.tenants import make_deployment

PAID = {"proxy": "openai:gpt-4o-mini", "planner": "openai:gpt-4o-mini", "executor": "builtin:grounded"}


def limit(tenant: Any, deployment: Any, of: str) -> None:
    if of == "visitor":
        with tenant_scope(tenant):
            SpendingPolicy.objects.create(visitor_daily_usd=Decimal(0))
    else:
        month = {"period": "month"} if of == "company's month" else {}
        make_budget(tenant, "0", **month, **({"deployment": deployment} if of == "chatbot" else {}))


def fell_back(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        rows = AuditEntry.objects.filter(event="model_fell_back").values_list("data", flat=True)
        return [json.loads(data)["reason"] for data in rows]


REASONS = {
    "company": "global_daily",
    "company's month": "global_monthly",
    "chatbot": "global_daily",
    "visitor": "cost_cap_reached",
}


@pytest.mark.parametrize("of", REASONS)
async def test_reached_limit_sends_a_conversation_to_the_built_in_model(tenant: Any, of: str) -> None:
    deployment = await in_scope(tenant, _prepared, tenant, of)
    session = await answered(deployment, "What can you do?")
    assert await in_scope(tenant, _told, session) == ("bot", "builtin:grounded", [REASONS[of]])


def _prepared(tenant: Any, of: str) -> Any:
    deployment = make_deployment(tenant, model_names=PAID)
    limit(tenant, deployment, of)
    return deployment


def _told(session: ChatSession) -> tuple[str, str, list[str]]:
    last = ChatSession.objects.get(pk=session.pk).last_sender
    answer = Turn.objects.get(session_id=session.pk)
    return last, answer.model_name, fell_back(session.tenant_id)


async def test_price_that_nobody_knows_sends_a_conversation_to_the_built_in_model(tenant: Any) -> None:
    unknown = dict.fromkeys(PAID, "openai:nobody-knows")
    deployment = await in_scope(tenant, lambda: make_deployment(tenant, model_names=unknown))
    session = await answered(deployment, "What can you do?")
    assert await in_scope(tenant, _told, session) == ("bot", "builtin:grounded", ["price_unknown"])


def opened_as(tenant: Any, customer: str) -> Any:
    session = make_session(make_deployment(tenant))
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(last_customer=customer)
    say(session, "Hello")
    with tenant_scope(tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return session, state.run.visitor


def test_customer_spends_as_one_visitor_in_every_conversation(tenant: Any) -> None:
    spenders = {opened_as(tenant, "C-1")[1] for _ in range(2)}
    assert spenders == {uuid5(tenant.pk, "C-1")}


def test_unknown_visitor_spends_as_their_conversation(tenant: Any) -> None:
    session, spender = opened_as(tenant, "")
    assert spender == session.pk


def test_customers_of_two_tenants_are_two_visitors(tenant: Any, other_tenant: Any) -> None:
    assert opened_as(tenant, "C-1")[1] != opened_as(other_tenant, "C-1")[1]


def test_free_conversation_makes_no_budget_for_its_visitor(tenant: Any) -> None:
    with tenant_scope(tenant):
        SpendingPolicy.objects.create(visitor_daily_usd=Decimal(1))
    opened_as(tenant, "C-1")
    with tenant_scope(tenant):
        assert not Budget.objects.exists()
