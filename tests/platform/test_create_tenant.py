"""One command creates a tenant whose owner can log in."""

from __future__ import annotations

import io
import re
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants.models import Tenant
from kernel.tenancy import tenant_scope


def _create(slug: str, email: str, *options: str) -> str:
    out = io.StringIO()
    call_command("create_tenant", slug, "--owner-email", email, *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def slug(database: None) -> str:
    return f"t-{uuid4().hex[:12]}"


def test_link_lets_the_owner_in(slug: str) -> None:
    said = _create(slug, f"{slug}@example.test", "--url", "https://desk.example/")
    found = re.search(r"login-link https://desk\.example(/\S+)", said)
    assert found
    owner = Client()
    owner.post(found[1], {"password": "a-quite-long-password"})
    assert owner.get(reverse("console-review")).status_code == 200


def test_creation_is_written_down(slug: str) -> None:
    _create(slug, f"{slug}@example.test")
    with tenant_scope(Tenant.objects.get(slug=slug)):
        events = AuditEntry.objects.order_by("seq").values_list("event", flat=True)
        assert list(events) == [AuditEvent.TENANT_CREATED, AuditEvent.MEMBER_ADDED]


def test_second_tenant_of_the_name_is_refused(slug: str) -> None:
    _create(slug, f"{slug}@example.test")
    with pytest.raises(CommandError, match="already"):
        _create(slug, f"other-{slug}@example.test")


@pytest.mark.parametrize(
    ("name", "email"), [("no slug", "a@example.test"), ("good", "no-address"), ("long" * 20, "a@example.test")]
)
def test_bad_input_is_refused(database: None, name: str, email: str) -> None:
    with pytest.raises(CommandError):
        _create(name, email)
    assert not Tenant.objects.filter(slug=name).exists()


def test_owner_with_an_account_gets_no_link(slug: str, stranger: Any) -> None:
    assert "login-link" not in _create(slug, stranger.email)
