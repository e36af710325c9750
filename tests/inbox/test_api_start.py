"""Conversations that a server starts over the REST API, with no more rights than their customer has proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import KeyScope
from apps.tenants.models import VisitorLimits
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.identity import make_identity_desk
from tests.factories.sessions import make_session
from tests.factories.signed import make_site, unsigned
from tests.factories.tenants import make_deployment, make_member, make_tenant
from tests.inbox.test_api import LIST, Api


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def start(api: Api, deployment: Any, **body: Any) -> Any:
    return api.send("post", LIST, {"deployment": str(deployment.pk), **body})


def write(api: Api, session_id: str, text: Any, **headers: str) -> Any:
    return api.send("post", f"{LIST}/{session_id}/visitor-messages", {"text": text}, **headers)


def test_anonymous_customer_reaches_what_everybody_does(api: Api, deployment: Any, tenant: Any) -> None:
    made = start(api, deployment, locale="de", attributes={"plan": "gold"})
    assert made.status_code == 201
    assert made.json()["level"] == "public"
    with tenant_scope(tenant):
        session = ChatSession.objects.get(pk=made.json()["id"])
        assert session.locale == "de"
        assert session.attributes == {"plan": "gold"}
        assert session.customer == ""


def test_signed_customer_is_known_and_an_unsigned_one_is_not(api: Api, tenant: Any, tmp_path: Path) -> None:
    deployment = make_identity_desk(tenant, tmp_path)
    site = make_site(deployment, gate="identity_verified")
    made = start(api, deployment, identity_token=site.sign(sub="C-7")).json()
    assert made["level"] == "verified"
    assert made["identity_problem"] == ""
    forged = start(api, deployment, identity_token=unsigned({"alg": "none"}, site.claims())).json()
    assert forged["level"] == "public"
    assert forged["identity_problem"] != ""


def test_message_is_stored_once_and_owes_an_answer(api: Api, deployment: Any, tenant: Any) -> None:
    session = start(api, deployment).json()["id"]
    first = write(api, session, "Where is my parcel?", **{"idempotency-key": "a"})
    assert first.status_code == 202
    assert first.json() == {"seq": 1, "repeated": False}
    again = write(api, session, "Where is my parcel?", **{"idempotency-key": "a"})
    assert again.json() == first.json()
    assert again["Idempotent-Replayed"] == "true"
    assert code(write(api, session, "Something else", **{"idempotency-key": "a"})) == (409, "idempotency_key_reused")
    with tenant_scope(tenant):
        assert ChronicleEntry.objects.filter(session_id=session).count() == 1
        assert QueueMessage.objects.filter(queue=Queue.PROXY, scope_id=session).count() == 1


def test_flood_is_refused_with_when_to_try_again(api: Api, deployment: Any, tenant: Any) -> None:
    with tenant_scope(tenant):
        VisitorLimits.objects.create(pending_turns=1)
    session = start(api, deployment).json()["id"]
    assert write(api, session, "One").status_code == 202
    refused = write(api, session, "Two")
    assert code(refused) == (429, "rate_limited")
    assert refused.json()["error"]["extra"]["retry_after"] > 0


@pytest.mark.parametrize("text", ["", "   ", "x" * 4001, None, "\x00"])
def test_bad_text_is_refused(api: Api, deployment: Any, text: Any) -> None:
    session = start(api, deployment).json()["id"]
    assert code(write(api, session, text)) == (400, "invalid")


@pytest.mark.parametrize("body", [{"level": "verified"}, {"customer": "C-1"}, {"resume_token": "x"}])
def test_nothing_else_is_taken_from_the_body(api: Api, deployment: Any, body: dict[str, str]) -> None:
    assert code(start(api, deployment, **body)) == (400, "invalid")


def test_foreign_deployments_and_conversations_are_not_found(api: Api, deployment: Any) -> None:
    session = start(api, deployment).json()["id"]
    stranger = make_tenant()
    assert code(start(api, make_deployment(stranger))) == (404, "not_found")
    assert code(write(Api(stranger), session, "Hello")) == (404, "not_found")
    assert code(write(api, str(uuid4()), "Hello")) == (404, "not_found")


def test_nobody_speaks_for_a_visitor_of_the_widget_or_of_another_program(
    api: Api, deployment: Any, tenant: Any
) -> None:
    of_widget = make_session(deployment)
    of_other = start(Api(tenant), deployment).json()["id"]
    for session in (of_widget.pk, of_other):
        assert code(write(api, session, "Refund me")) == (404, "not_found")
    with tenant_scope(tenant):
        assert not ChronicleEntry.objects.filter(session_id__in=(of_widget.pk, of_other)).exists()


def test_disabled_deployment_starts_nothing(api: Api, tenant: Any) -> None:
    assert code(start(api, make_deployment(tenant, enabled=False))) == (404, "not_found")


def test_readers_start_nothing(deployment: Any, tenant: Any) -> None:
    assert code(start(Api(tenant, KeyScope.SESSIONS_READ), deployment)) == (403, "forbidden_scope")
    assert code(start(Api(tenant, member=make_member(tenant, "viewer")), deployment)) == (403, "forbidden_role")
