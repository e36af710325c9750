"""API errors while a backing service is down: one shape, 503, and when to retry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.test import Client

from apps.tenants.models import Deployment
from silas_platform.errors import api_exception


@pytest.fixture
def no_database(database: None) -> Iterator[None]:
    def refuse(*_: Any) -> None:
        raise OperationalError("the server closed the connection")

    with connection.execute_wrapper(refuse):
        yield


def test_api_without_a_database_is_503_and_says_when_to_come_back(deployment: Deployment, no_database: None) -> None:
    answer = Client().post(f"/api/v1/widget/{deployment.public_key}/sessions", {}, content_type="application/json")
    error = answer.json()["error"]
    assert answer.status_code == 503
    assert error["code"] == "unavailable"
    assert answer["Retry-After"] == str(error["extra"]["retry_after"])


def test_page_without_a_database_is_503_and_shows_no_trace(no_database: None) -> None:
    page = Client().get("/demo/somewhere/")
    assert page.status_code == 503
    assert b"closed the connection" not in page.content


def test_permission_that_django_refuses_has_the_code_of_a_role() -> None:
    answer = api_exception(PermissionDenied(), {})
    assert answer is not None
    assert answer.status_code == 403
    assert answer.data["error"]["code"] == "forbidden_role"
