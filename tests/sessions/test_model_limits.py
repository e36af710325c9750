"""How often may one conversation, and one company's, have an outside model asked within a minute?"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings

from apps.audit.models import AuditEntry
from apps.sessions.models import ChatSession
from apps.sessions.ratelimit import limits
from apps.tenants.models import VisitorLimits
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.models import GROUNDED
from tests.factories.sessions import make_session, say, served

OUTSIDE = "ollama:somebody"


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


def bounded(settings: LazySettings, **changes: int) -> None:
    settings.VISITOR_LIMITS = {**settings.VISITOR_LIMITS, **changes}


async def asked(session: ChatSession, times: int, *, scope: Any = None, model: str = OUTSIDE) -> list[bool]:
    where = scope or session.pk
    return [await limits.may_ask(session.tenant_id, where, model) for _ in range(times)]


async def test_run_beyond_the_limit_of_a_conversation_is_refused(session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, model_runs_a_minute=2)
    assert await asked(session, 3) == [True, True, False]


async def test_limit_of_a_company_holds_over_its_conversations(session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, tenant_model_runs_a_minute=2)
    assert [(await asked(session, 1, scope=uuid4()))[0] for _ in range(3)] == [True, True, False]


async def test_another_conversation_is_left_alone(session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, model_runs_a_minute=1)
    await asked(session, 2)
    assert await asked(session, 1, scope=uuid4()) == [True]


async def test_rivals_get_no_more_runs_than_the_limit_together(session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, model_runs_a_minute=3)
    answers = await asyncio.gather(*[asked(session, 1) for _ in range(9)])
    assert sum(answer for (answer,) in answers) == 3


async def test_built_in_model_is_not_counted(session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, model_runs_a_minute=0)
    assert await asked(session, 3, model=GROUNDED) == [True, True, True]


async def test_companys_own_row_counts(session: ChatSession) -> None:
    await in_scope(session.tenant_id, VisitorLimits.objects.create, model_runs_a_minute=1)
    assert await asked(session, 2) == [True, False]


async def test_models_are_asked_where_redis_is_away(session: ChatSession, settings: LazySettings) -> None:
    """What they cost is held by the budgets, in the database."""
    settings.REDIS_URL = "unix:///nowhere.sock"
    assert await asked(session, 1) == [True]


async def test_conversation_that_asked_too_often_is_answered_by_the_built_in_model(
    session: ChatSession, deployment: Any, settings: LazySettings
) -> None:
    bounded(settings, model_runs_a_minute=0)
    await in_scope(session.tenant_id, _name_models, deployment)
    await in_thread(say, session, "Hello")
    await served(session)
    assert await in_thread(_fell_back, session) == [{"reason": "asked_too_often"}]


def _name_models(deployment: Any) -> None:
    deployment.model_names = {"proxy": OUTSIDE, "planner": OUTSIDE}
    deployment.save(update_fields=["model_names"])


def _fell_back(session: ChatSession) -> list[Any]:
    with tenant_scope(session.tenant_id):
        rows = AuditEntry.objects.filter(event="model_fell_back", subject=f"session:{session.pk}")
        return [json.loads(entry.data) for entry in rows]
