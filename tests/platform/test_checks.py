"""The numbered checks in front of a start."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from apps.tenants.models import User
from silas_platform.checks import (
    database_role_is_bound,
    demo_logins_stay_home,
    keys_are_distinct,
    open_host_is_guarded,
)
from tests.platform.connecting import connected_as


def test_open_host_fails_check_and_loopback_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOST", raising=False)
    assert open_host_is_guarded() == []
    monkeypatch.setenv("HOST", "0.0.0.0")
    with pytest.raises(SystemCheckError, match=r"silas\.E001"):
        call_command("check")


def test_one_key_for_two_jobs_fails_check_and_no_key_passes(settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = settings.SILAS_SECRETS_KEY
    assert [fault.id for fault in keys_are_distinct()] == ["silas.E002"]
    settings.SILAS_SIGNING_KEY = settings.SILAS_SECRETS_KEY = ""
    assert keys_are_distinct() == []


def test_application_role_passes_check(database: None) -> None:
    assert database_role_is_bound(databases=["default"]) == []


@pytest.mark.parametrize("dsn", ["DATABASE_OWNER_URL", "SILAS_TEST_SUPERUSER_DSN"])
def test_role_that_walls_do_not_bind_fails_check(database: None, dsn: str) -> None:
    with connected_as(os.environ[dsn]):
        assert [fault.id for fault in database_role_is_bound(databases=["default"])] == ["silas.E003"]


@pytest.mark.parametrize(("host", "ids"), [("0.0.0.0", ["silas.E004"]), ("127.0.0.1", [])])
def test_demo_login_behind_open_host_fails_check(
    database: None, monkeypatch: pytest.MonkeyPatch, host: str, ids: list[str]
) -> None:
    monkeypatch.setenv("HOST", host)
    user = User.objects.create_user(f"owner@{host}.example", "owner-of-somewhere")
    faults = demo_logins_stay_home(databases=["default"])
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert [fault.id for fault in faults] == ids
