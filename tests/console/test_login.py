"""Logging in with a password, and who is refused."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.console.pages.login import ratelimit
from kernel.tenancy import tenant_scope
from tests.rivals import race

PASSWORD = "a-long-password"


@pytest.fixture
def address() -> str:
    """An internet address of this test alone, so that tests do not throttle each other."""
    return f"test-{uuid4().hex}"


def _log_in(address: str, username: str, password: str = PASSWORD, **data: str) -> Any:
    client = Client(REMOTE_ADDR=address)
    return client.post(reverse("console-login"), {"username": username, "password": password, **data})


def test_login_leads_to_the_console(owner: Any, address: str) -> None:
    assert _log_in(address, owner.email)["Location"] == reverse("console")


def test_login_with_other_case_of_the_address_works(owner: Any, address: str) -> None:
    assert _log_in(address, f" {owner.email.upper()} ").status_code == 302


def test_login_leads_to_where_one_came_from(owner: Any, address: str) -> None:
    assert _log_in(address, owner.email, next="/console/activity/")["Location"] == "/console/activity/"


@pytest.mark.parametrize("elsewhere", ["https://evil.test/", "//evil.test/", "javascript:alert(1)"])
def test_login_never_leads_to_another_site(owner: Any, address: str, elsewhere: str) -> None:
    assert _log_in(address, owner.email, next=elsewhere)["Location"] == reverse("console")


def test_login_is_written_down_in_the_members_tenant(tenant: Any, owner: Any, address: str) -> None:
    _log_in(address, owner.email)
    with tenant_scope(tenant):
        (entry,) = AuditEntry.objects.filter(event=AuditEvent.STAFF_LOGGED_IN)
    assert entry.actor == f"user:{owner.pk}"


def test_wrong_password_and_unknown_account_look_the_same(owner: Any, address: str) -> None:
    known = _log_in(address, owner.email, "wrong").content.decode().replace(owner.email, "X")
    unknown = _log_in(address, "nobody@example.test", "wrong").content.decode().replace("nobody@example.test", "X")
    assert _without_csrf(known) == _without_csrf(unknown)


def _without_csrf(html: str) -> str:
    return "".join(line for line in html.splitlines() if "csrfmiddlewaretoken" not in line)


def test_disabled_account_is_refused(owner: Any, address: str) -> None:
    owner.is_active = False
    owner.save()
    assert _log_in(address, owner.email).status_code == 400


def test_login_after_too_many_failures_is_refused_even_with_the_right_password(owner: Any, address: str) -> None:
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        _log_in(address, owner.email, "wrong")
    assert _log_in(address, owner.email).status_code == 429


def test_throttle_of_one_account_leaves_others_alone(owner: Any, agent: Any, address: str) -> None:
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        _log_in(address, owner.email, "wrong")
    assert _log_in(address, agent.email).status_code == 302


def test_throttle_counts_unknown_accounts_too(database: None, address: str) -> None:
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        _log_in(address, "nobody@example.test", "wrong")
    assert _log_in(address, "nobody@example.test", "wrong").status_code == 429


def test_throttle_of_one_address_leaves_others_alone(owner: Any, address: str) -> None:
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        _log_in(address, owner.email, "wrong")
    assert _log_in(f"{address}-other", owner.email).status_code == 302


def test_guessing_many_accounts_from_one_address_is_throttled(owner: Any, address: str) -> None:
    for number in range(ratelimit.MAX_PER_ADDRESS):
        ratelimit.wait_before(address, f"u{number}@example.test")
    assert _log_in(address, owner.email).status_code == 429


def test_good_login_forgets_the_failures(owner: Any, address: str) -> None:
    for _ in range(2):
        for _ in range(ratelimit.MAX_PER_ACCOUNT - 1):
            _log_in(address, owner.email, "wrong")
        assert _log_in(address, owner.email).status_code == 302


def test_logout_ends_the_session(owner: Any) -> None:
    client = Client()
    client.force_login(owner)
    client.post(reverse("console-logout"))
    assert client.get(reverse("console-inbox")).status_code == 302


def test_account_guessed_from_many_addresses_is_closed_for_all(owner: Any) -> None:
    """X-Forwarded-For can be forged: every attempt pretends to come from another address."""
    tries = [_log_in(f"spoofed-{uuid4().hex}", owner.email, "wrong") for _ in range(ratelimit.MAX_FROM_ANYWHERE + 1)]
    assert tries[-1].status_code == 429


def test_rivals_get_no_more_tries_together(owner: Any, address: str) -> None:
    answers = race(*[lambda: _log_in(address, owner.email, "wrong").status_code] * 12)
    assert sorted(answers) == [400] * ratelimit.MAX_PER_ACCOUNT + [429] * (12 - ratelimit.MAX_PER_ACCOUNT)


def test_good_logins_never_use_up_an_address(owner: Any, address: str) -> None:
    codes = {_log_in(address, owner.email).status_code for _ in range(ratelimit.MAX_PER_ADDRESS + 2)}
    assert codes == {302}


def test_account_name_that_no_database_can_hold_is_a_wrong_one(owner: Any, address: str) -> None:
    assert _log_in(address, "\0", "wrong").status_code == 400
