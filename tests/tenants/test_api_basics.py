"""What every answer of the REST API has: problem details, what is left of the rate limit, and the fields asked for."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import Client

from apps.tenants.services import create_api_key
from kernel.ratelimit import fixed_window
from kernel.tenancy import tenant_scope


@pytest.fixture
def key(tenant: Any) -> str:
    with tenant_scope(tenant):
        return create_api_key("Test").key


def get(key: str, path: str) -> Any:
    return Client().get(path, headers={"authorization": f"Bearer {key}"})


def test_error_is_a_problem_with_the_earlier_member(key: str) -> None:
    answer = get(key, "/api/v1/cards?colour=red")
    assert answer["Content-Type"] == "application/problem+json"
    said = answer.json()
    assert said["status"] == 400
    assert said["title"] == "Bad Request"
    assert said["type"] == "urn:silas:error:invalid"
    assert said["code"] == said["error"]["code"]
    assert said["detail"] == said["error"]["message"]
    assert list(said["error"]["extra"]["fields"]) == ["colour"]


@pytest.mark.parametrize("path", ["/api/v1/cards/00000000-0000-0000-0000-000000000000", "/api/v1/members?limit=0"])
def test_refusals_of_services_and_of_fields_have_one_shape(key: str, path: str) -> None:
    answer = get(key, path)
    assert answer["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "code", "error"} == set(answer.json())


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/sessions/4711"])
def test_unknown_address_is_a_problem_too(key: str, path: str) -> None:
    answer = get(key, path)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json()["error"]["code"] == "not_found"


def test_unknown_address_of_people_is_a_page(database: None) -> None:
    answer = Client().get("/console/nothing/")
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_what_is_left_is_said_and_then_refused(key: str, settings: Any) -> None:
    settings.API_REQUESTS_A_MINUTE = 2
    left = [get(key, "/api/v1/labels")["RateLimit-Remaining"] for _ in range(2)]
    assert left == ["1", "0"]
    refused = get(key, "/api/v1/labels")
    assert refused.status_code == 429
    assert refused.json()["code"] == "rate_limited"
    assert refused["RateLimit-Remaining"] == "0"
    assert 0 < int(refused["Retry-After"]) <= int(refused["RateLimit-Reset"]) <= 60


def test_limit_is_each_keys_own(key: str, tenant: Any, settings: Any) -> None:
    settings.API_REQUESTS_A_MINUTE = 1
    with tenant_scope(tenant):
        other = create_api_key("Other").key
    assert [get(each, "/api/v1/labels").status_code for each in (key, key, other)] == [200, 429, 200]


def test_nothing_is_refused_where_nothing_can_be_counted(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise redis.ConnectionError

    monkeypatch.setattr(fixed_window, "redis_client", away)
    answer = get(key, "/api/v1/labels")
    assert answer.status_code == 200
    assert "RateLimit-Limit" not in answer


def test_fields_are_those_asked_for_in_a_list_and_in_one(key: str) -> None:
    listed = get(key, "/api/v1/audit?fields=seq,event&limit=2").json()
    assert {frozenset(entry) for entry in listed["entries"]} == {frozenset({"seq", "event"})}
    assert "next" in listed
    one = get(key, f"/api/v1/audit/{listed['entries'][0]['seq']}?fields=entry_hash").json()
    assert list(one) == ["entry_hash"]


def test_unknown_field_is_refused_by_name(key: str) -> None:
    answer = get(key, "/api/v1/audit?fields=seq,secret")
    assert answer.status_code == 400
    assert answer.json()["error"]["extra"] == {"fields": {"fields": ["secret"]}}


def test_installation_has_a_limit() -> None:
    assert settings.API_REQUESTS_A_MINUTE >= 1000
