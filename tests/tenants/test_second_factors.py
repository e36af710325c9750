"""Is a person who lost every factor let in again by whoever runs the platform, and is that written down?"""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants import access, login_passkeys, second_factors
from apps.tenants.models import Login
from kernel.tenancy import tenant_scope
from tests.factories.accounts import add_app, add_passkey, guest, is_in, log_in
from tests.factories.console import browser
from tests.factories.passkeys import SoftPasskey


@pytest.fixture
def locked_out(owner: Any) -> Any:
    add_app(owner)
    add_passkey(owner, SoftPasskey())
    browser(owner)
    call_command("remove_second_factors", owner.email.upper(), stdout=io.StringIO())
    return owner


def test_password_alone_lets_in_again(locked_out: Any) -> None:
    client = guest()
    log_in(client, locked_out)
    assert is_in(client, locked_out)
    assert not access.has_second_factor(locked_out)


def test_recovery_codes_are_gone_with_the_factors(locked_out: Any) -> None:
    assert second_factors.codes_left(locked_out) == 0


def test_open_logins_end(locked_out: Any) -> None:
    assert not Login.objects.filter(user=locked_out).exists()


def test_removal_is_written_down_as_the_operators(tenant: Any, locked_out: Any) -> None:
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(event=AuditEvent.SECOND_FACTOR_REMOVED).get()
    assert entry.actor == "system"
    assert entry.subject == f"user:{locked_out.pk}"


def test_unknown_address_is_said(database: None) -> None:
    with pytest.raises(CommandError, match="no account"):
        call_command("remove_second_factors", "nobody@example.test")


def test_codes_stay_as_long_as_one_factor_does(owner: Any) -> None:
    add_app(owner)
    add_passkey(owner, SoftPasskey())
    second_factors.remove_totp(owner)
    assert second_factors.codes_left(owner) == 10
    (passkey,) = login_passkeys.passkeys_of(owner)
    login_passkeys.remove(passkey.pk, user=owner)
    assert second_factors.codes_left(owner) == 0
