"""Lockout after failed logins, the email about it, and that addresses of accounts are not revealed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.console.pages.login import ratelimit
from apps.tenants.models import Letter
from kernel.tenancy import tenant_scope
from tests.factories.accounts import guest, log_in, send_letters, sent_to


def _locked(client: Any, user: Any) -> Any:
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        log_in(client, user, "wrong")
    return log_in(client, user, "wrong")


def test_locked_out_person_is_told_how_long(owner: Any) -> None:
    assert "Wait 15 minutes" in _locked(guest(), owner).content.decode()


def test_lock_out_of_an_account_that_does_not_exist_looks_the_same(owner: Any) -> None:
    class Nobody:
        email = f"{uuid4().hex}@example.test"

    known, unknown = _locked(guest(), owner), _locked(guest(), Nobody())
    assert known.status_code == unknown.status_code
    assert (b"quarter" in known.content) == (b"quarter" in unknown.content)


def test_wait_grows_with_every_lock_out() -> None:
    address, account = f"test-{uuid4().hex}", f"{uuid4().hex}@example.test"
    waits = []
    for _ in range(3):
        for _ in range(ratelimit.MAX_PER_ACCOUNT):
            ratelimit.wait_before(address, account)
        wait = ratelimit.wait_before(address, account)
        assert wait is not None
        waits.append(wait.seconds)
        own, *_ = ratelimit._limits(address, account)
        cache.delete_many([own.key, f"{own.key}:closed"])  # it ran out
    assert waits == [900, 1800, 3600]


def test_wait_is_never_longer_than_a_working_day() -> None:
    address, account = f"test-{uuid4().hex}", f"{uuid4().hex}@example.test"
    own, *_ = ratelimit._limits(address, account)
    cache.set(f"{own.key}:strikes", 40, 60)
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        ratelimit.wait_before(address, account)
    wait = ratelimit.wait_before(address, account)
    assert wait is not None and wait.seconds == ratelimit.LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 minute"),
        (900, "15 minutes"),
        (1800, "30 minutes"),
        (5400, "1 hour and 30 minutes"),
    ],
)
def test_wait_is_said_in_words(seconds: int, words: str) -> None:
    assert ratelimit.Wait(seconds).words == words


def test_lock_out_is_written_down_once_in_the_members_tenant(tenant: Any, owner: Any) -> None:
    client = guest()
    _locked(client, owner)
    log_in(client, owner, "wrong")
    send_letters()
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.LOGIN_LOCKED).count() == 1


def test_lock_out_is_told_the_accounts_person(owner: Any) -> None:
    _locked(guest(), owner)
    assert [letter.subject for letter in sent_to(owner.email)] == ["Failed attempts to log in to your account"]


def test_lock_out_of_nobody_writes_to_nobody(database: None) -> None:
    class Nobody:
        email = f"{uuid4().hex}@example.test"

    _locked(guest(), Nobody())
    assert sent_to(Nobody.email) == []
    assert Letter.objects.get(address=Nobody.email).state == "dropped"


def test_login_begins_a_session_with_a_new_key(owner: Any) -> None:
    client = guest()
    client.get(reverse("console-login"))
    before = client.session
    before["kept"] = "1"
    before.save()
    log_in(client, owner)
    assert client.session.session_key != before.session_key and "kept" not in client.session


@pytest.mark.parametrize("elsewhere", ["https://evil.test/", "//evil.test/", "/\\evil.test", "javascript:alert(1)"])
def test_next_is_an_own_page_after_the_second_factor_too(owner: Any, elsewhere: str) -> None:
    from tests.factories.accounts import add_app

    app, _ = add_app(owner)
    client = guest()
    log_in(client, owner, next=elsewhere)
    assert client.post(reverse("console-second"), {"code": app.now()})["Location"] == reverse("console")
