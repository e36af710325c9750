"""The consent before the first word: nothing is stored without it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.audit.models import AuditEntry
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors.models import Consent
from kernel.tenancy import tenant_scope
from tests.factories.visitors import offer, refused


@pytest.fixture
def asking(deployment: Deployment) -> Deployment:
    offer(deployment, consent_text="We keep what you write.", consent_version="v1")
    return deployment


def _start(deployment: Deployment, **body: Any) -> Any:
    return Client().post(f"/api/v1/widget/{deployment.public_key}/sessions", body, content_type="application/json")


@pytest.mark.parametrize("given", [{}, {"consent": "v0"}, {"consent": "V1"}, {"resume_token": "no-such-token"}])
def test_conversation_does_not_begin_without_consent(asking: Deployment, given: dict[str, str]) -> None:
    assert refused(_start(asking, **given)) == (403, "consent_required")


def test_nothing_is_stored_without_consent(asking: Deployment) -> None:
    _start(asking)
    with tenant_scope(asking.tenant_id):
        assert not ChatSession.objects.filter(deployment=asking).exists()
        assert not AuditEntry.objects.filter(event="session_started").exists()


def test_consent_is_a_row_with_its_version(asking: Deployment) -> None:
    begun = _start(asking, consent="v1").json()
    with tenant_scope(asking.tenant_id):
        row = Consent.objects.get(session_id=begun["session_id"])
        told = AuditEntry.objects.get(event="consent_given")
    assert row.version == "v1"
    assert told.data == '{"version":"v1"}'
    assert len(row.digest) == 64


def test_consent_given_twice_is_written_once(asking: Deployment) -> None:
    begun = _start(asking, consent="v1").json()
    _start(asking, consent="v1", resume_token=begun["resume_token"])
    with tenant_scope(asking.tenant_id):
        assert Consent.objects.filter(session_id=begun["session_id"]).count() == 1


def test_conversation_that_was_agreed_to_goes_on(asking: Deployment) -> None:
    begun = _start(asking, consent="v1").json()
    assert _start(asking, resume_token=begun["resume_token"]).json()["session_id"] == begun["session_id"]


def test_new_version_is_asked_for_in_an_old_conversation(asking: Deployment) -> None:
    begun = _start(asking, consent="v1").json()
    offer(asking, consent_version="v2")
    assert refused(_start(asking, resume_token=begun["resume_token"])) == (403, "consent_required")


def test_consent_of_another_conversation_counts_for_nothing(asking: Deployment, other_tenant: Any) -> None:
    _start(asking, consent="v1")
    assert refused(_start(asking)) == (403, "consent_required")


def test_consent_where_none_is_asked_is_no_row(deployment: Deployment) -> None:
    begun = _start(deployment, consent="v1").json()
    with tenant_scope(deployment.tenant_id):
        assert not Consent.objects.filter(session_id=begun["session_id"]).exists()


def _statements(deployment: Deployment, **body: Any) -> list[str]:
    with CaptureQueriesContext(connection) as seen:
        assert _start(deployment, **body).status_code == 201
    return [each["sql"] for each in seen.captured_queries]


@pytest.mark.parametrize("token", [{}, {"identity_token": "not.a.token"}])
def test_conversation_and_consent_are_stored_at_once(asking: Deployment, token: dict[str, str]) -> None:
    """Whatever dies in between leaves no conversation without its consent."""
    told = _statements(asking, consent="v1", attributes={"plan": "gold"}, **token)
    begun, agreed, described = (
        next(at for at, sql in enumerate(told) if sql.startswith(first))
        for first in (
            'INSERT INTO "silas_sessions_chatsession"',
            'INSERT INTO "silas_sessions_consent"',
            'UPDATE "silas_sessions_chatsession"',
        )
    )
    assert "COMMIT" not in told[begun : max(agreed, described)]


def test_beginning_takes_one_transaction_where_nothing_is_asked_first(deployment: Deployment) -> None:
    """Beside the one that finds the deployment."""
    assert sum(sql.startswith("SELECT set_config('silas.tenant'") for sql in _statements(deployment)) == 2
