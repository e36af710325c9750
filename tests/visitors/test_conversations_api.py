"""A conversation's files, what the model saw in a turn, and forgetting the visitor, over the REST API."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from kernel.tenancy import in_thread
from tests.factories.api import Api, code
from tests.factories.memories import conversation, remember
from tests.factories.sessions import answered
from tests.factories.tenants import make_member
from tests.factories.visitors import PNG, Browser


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)


def at(session: ChatSession, path: str) -> str:
    return f"/api/v1/sessions/{session.pk}/{path}"


def test_file_is_listed_and_downloaded(api: Api, visitor: Browser, session: ChatSession) -> None:
    visitor.send("cat.png", PNG)
    (row,) = api.get(at(session, "files")).json()["files"]
    download = api.get(at(session, f"files/{row['id']}"))
    assert row["name"] == "cat.png"
    assert row["size"] == len(PNG)
    assert b"".join(download.streaming_content) == PNG
    assert download["Content-Disposition"].startswith("attachment")
    assert download["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert code(api.get(at(session, f"files/{uuid4()}"))) == (404, "not_found")


async def test_trace_of_a_turn_has_the_texts_that_the_model_saw(tenant: Any, deployment: Any) -> None:
    session = await answered(deployment, "My cat is called Whiskers.")
    api = await in_thread(Api, tenant)
    trace = (await in_thread(api.get, at(session, "turns/1/trace"))).json()
    texts = [item["text"] for zone in trace["zones"] for item in zone["items"]]
    assert any("Whiskers" in (text or "") for text in texts)
    assert trace["tokens"] > 0
    assert code(await in_thread(api.get, at(session, "turns/9/trace"))) == (404, "not_found")


def test_member_forgets_a_visitor_and_a_program_does_not(tenant: Any, api: Api, session: ChatSession) -> None:
    remember(tenant, conversation(session.pk), "The cat is called Whiskers.")
    agent, viewer = Api(tenant, member=make_member(tenant, "agent")), Api(tenant, member=make_member(tenant, "viewer"))
    assert code(api.post(at(session, "forget"))) == (403, "forbidden_role")
    assert code(viewer.post(at(session, "forget"))) == (403, "forbidden_role")
    assert agent.post(at(session, "forget")).json() == {"memories": 1}


def test_nothing_of_another_company_is_found(
    api: Api, other_tenant: Any, visitor: Browser, session: ChatSession
) -> None:
    visitor.send("cat.png", PNG)
    (sent,) = api.get(at(session, "files")).json()["files"]
    foreign, owner = Api(other_tenant), Api(other_tenant, member=make_member(other_tenant, "owner"))
    assert code(foreign.get(at(session, "files"))) == (404, "not_found")
    assert code(foreign.get(at(session, f"files/{sent['id']}"))) == (404, "not_found")
    assert code(foreign.get(at(session, "turns/1/trace"))) == (404, "not_found")
    assert code(owner.post(at(session, "forget"))) == (404, "not_found")


def test_key_with_other_scopes_reads_nothing(tenant: Any, session: ChatSession) -> None:
    other = Api(tenant, KeyScope.CARDS_READ)
    assert code(other.get(at(session, "files"))) == (403, "forbidden_scope")
    assert code(other.get(at(session, "turns/1/trace"))) == (403, "forbidden_scope")
