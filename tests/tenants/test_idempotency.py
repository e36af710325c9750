"""A POST of the REST API with an `Idempotency-Key` is carried out once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.inbox.models import CannedReply, Note
from apps.tenants import idempotency
from apps.tenants.models import ApiKey, IdempotentRequest
from apps.tenants.services import create_api_key
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment
from tests.rivals import race

REPLIES = "/api/v1/canned-replies"
BODY = {"name": "hi", "text": "Hello"}


@pytest.fixture
def key(tenant: Any) -> str:
    with tenant_scope(tenant):
        return create_api_key("Test").key


def post(key: str, path: str, body: dict[str, Any], once: str = "k-1") -> Any:
    headers = {"authorization": f"Bearer {key}", "idempotency-key": once}
    return Client(raise_request_exception=False).post(path, body, content_type="application/json", headers=headers)


def row_of(tenant: Any) -> IdempotentRequest:
    with tenant_scope(tenant):
        return IdempotentRequest.objects.get()


def change(tenant: Any, **values: Any) -> None:
    with tenant_scope(tenant):
        IdempotentRequest.objects.update(**values)


def test_same_request_is_answered_like_the_first_and_done_once(tenant: Any, key: str) -> None:
    first, again = post(key, REPLIES, BODY), post(key, REPLIES, {"text": "Hello", "name": "hi"})
    assert first.status_code == again.status_code == 201
    assert again.json() == first.json()
    assert "Idempotent-Replayed" not in first
    assert again["Idempotent-Replayed"] == "true"
    assert again["Cache-Control"] == "no-store"
    with tenant_scope(tenant):
        assert CannedReply.objects.count() == 1


def test_other_body_is_refused(key: str) -> None:
    post(key, REPLIES, BODY)
    assert code(post(key, REPLIES, {**BODY, "text": "Bye"})) == (409, "idempotency_key_reused")


def test_key_counts_for_one_caller_and_one_address(tenant: Any, other_tenant: Any, key: str) -> None:
    with tenant_scope(tenant):
        other = create_api_key("Other").key
    with tenant_scope(other_tenant):
        foreign = create_api_key("Foreign").key
    post(key, REPLIES, BODY)
    assert post(other, REPLIES, {**BODY, "name": "ho"}).status_code == 201
    assert post(foreign, REPLIES, BODY).status_code == 201
    assert post(key, "/api/v1/labels", {"name": "VIP", "colour": "red"}).status_code == 201


def test_refused_request_is_corrected_under_the_same_key(key: str) -> None:
    assert code(post(key, REPLIES, {**BODY, "colour": "red"})) == (400, "invalid")
    assert post(key, REPLIES, BODY).status_code == 201


def test_too_long_key_is_refused(key: str) -> None:
    assert code(post(key, REPLIES, BODY, once="k" * 256)) == (400, "invalid")


def test_first_request_that_still_runs_is_waited_for(tenant: Any, key: str) -> None:
    post(key, REPLIES, BODY)
    change(tenant, status=None, answer=b"")
    answer = post(key, REPLIES, BODY)
    assert code(answer) == (409, "request_in_progress")
    assert int(answer["Retry-After"]) > 0


def test_of_rivals_one_is_carried_out(tenant: Any, key: str) -> None:
    answers = race(*[lambda: post(key, REPLIES, BODY)] * 3)
    assert all(answer.status_code in (201, 409) for answer in answers)
    with tenant_scope(tenant):
        assert CannedReply.objects.count() == 1


def test_request_without_an_answer_has_an_unknown_outcome(tenant: Any, key: str) -> None:
    post(key, REPLIES, BODY)
    change(tenant, status=None, answer=b"", created_at=now() - idempotency.RUNS_AT_MOST)
    assert code(post(key, REPLIES, BODY)) == (409, "outcome_unknown")


def test_server_error_leaves_the_outcome_unknown(tenant: Any, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.inbox.labels_and_replies.save_reply", lambda *_, **__: 1 / 0)
    assert post(key, REPLIES, BODY).status_code == 500
    assert row_of(tenant).status is None


def test_note_whose_answer_was_lost_is_answered_and_written_once(tenant: Any, key: str) -> None:
    session = make_session(make_deployment(tenant))
    path = f"/api/v1/sessions/{session.pk}/notes"
    first = post(key, path, {"text": "Call back"})
    change(tenant, status=None, answer=b"", created_at=now() - idempotency.RUNS_AT_MOST)
    assert post(key, path, {"text": "Call back"}).json() == first.json()
    with tenant_scope(tenant):
        assert Note.objects.count() == 1


def test_answer_with_a_secret_is_not_stored(tenant: Any, key: str) -> None:
    made = post(key, "/api/v1/api-keys", {"name": "Shop"})
    assert made.status_code == 201
    assert row_of(tenant).answer == b""
    assert code(post(key, "/api/v1/api-keys", {"name": "Shop"})) == (409, "answer_not_kept")
    with tenant_scope(tenant):
        assert ApiKey.objects.filter(name="Shop").count() == 1


def test_stored_answer_is_sealed(tenant: Any, key: str) -> None:
    post(key, REPLIES, BODY)
    assert b"Hello" not in bytes(row_of(tenant).answer)


def test_key_is_forgotten_after_a_day(tenant: Any, key: str) -> None:
    post(key, REPLIES, BODY)
    change(tenant, created_at=now() - idempotency.KEPT)
    assert post(key, REPLIES, {"name": "ho", "text": "Ho"}).status_code == 201


def test_old_requests_are_deleted(tenant: Any) -> None:
    with tenant_scope(tenant):
        for age in (timedelta(hours=25), timedelta(hours=23)):
            IdempotentRequest.objects.create(digest=uuid4().hex, body_digest="", created_at=now() - age)
        assert idempotency.delete_old() is False
        assert IdempotentRequest.objects.count() == 1


def test_exported_file_is_not_kept(key: str) -> None:
    assert post(key, "/api/v1/audit/export", {}).status_code == 200
    assert code(post(key, "/api/v1/audit/export", {})) == (409, "answer_not_kept")


def test_get_claims_nothing(tenant: Any, key: str) -> None:
    Client().get(REPLIES, headers={"authorization": f"Bearer {key}", "idempotency-key": "k"})
    with tenant_scope(tenant):
        assert not IdempotentRequest.objects.exists()
