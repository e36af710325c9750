"""Welcome links let their person in once, within three days, and no one else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.test import Client
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.services import add_member
from kernel.tenancy import tenant_scope

PASSWORD = {"password": "a-quite-long-password"}


class _Earlier(PasswordResetTokenGenerator):
    """Makes links as they were made some time ago."""

    def __init__(self, ago: timedelta) -> None:
        super().__init__()
        self.ago = ago

    def _now(self) -> datetime:
        now: datetime = super()._now()  # type: ignore[misc]  # the parent's is untyped
        return now - self.ago


@pytest.fixture
def invited(tenant: Any) -> Any:
    with tenant_scope(tenant):
        return add_member(f"{uuid4().hex}@example.test", role=Role.AGENT)


def _link(user: User, ago: timedelta) -> str:
    who = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("console-welcome", args=[who, _Earlier(ago).make_token(user)])


def _is_dead(link: str) -> bool:
    answers = [Client().get(link), Client().post(link, PASSWORD)]
    dead = [answer.status_code == 404 and "is no longer valid" in answer.content.decode() for answer in answers]
    return all(dead)


def test_link_logs_its_person_in(invited: Any) -> None:
    guest = Client()
    guest.post(invited.welcome, PASSWORD)
    assert guest.session["_auth_user_id"] == str(invited.membership.user.pk)


def test_link_sets_the_password(invited: Any) -> None:
    Client().post(invited.welcome, PASSWORD)
    invited.membership.user.refresh_from_db()
    assert invited.membership.user.check_password(PASSWORD["password"])


def test_link_that_was_looked_at_still_works(invited: Any) -> None:
    """Mail scanners open links: looking is no use."""
    Client().get(invited.welcome)
    assert Client().post(invited.welcome, PASSWORD).status_code == 302


def test_used_link_is_dead(invited: Any) -> None:
    Client().post(invited.welcome, PASSWORD)
    assert _is_dead(invited.welcome)


def test_link_younger_than_three_days_works(invited: Any) -> None:
    link = _link(invited.membership.user, timedelta(days=2, hours=23))
    assert Client().post(link, PASSWORD).status_code == 302


def test_link_older_than_three_days_is_dead(invited: Any) -> None:
    assert _is_dead(_link(invited.membership.user, timedelta(days=3, minutes=1)))


def test_link_of_a_blocked_person_is_dead(invited: Any) -> None:
    User.objects.filter(pk=invited.membership.user.pk).update(is_active=False)
    assert _is_dead(invited.welcome)


def test_link_with_somebody_elses_token_is_dead(invited: Any, owner: Any) -> None:
    who = urlsafe_base64_encode(force_bytes(owner.pk))
    assert _is_dead(reverse("console-welcome", args=[who, invited.welcome.split("/")[-2]]))


@pytest.mark.parametrize(
    "link",
    ["x/y", "////", "%00/%00", f"{'A' * 22}/c0ffee-00", f"{urlsafe_base64_encode(b'1')}/set-password", "é/ü"],
)
def test_forged_link_is_dead(database: None, link: str) -> None:
    assert Client().get(f"/console/welcome/{link}/").status_code == 404


def test_known_and_unknown_people_get_the_same_answer(invited: Any) -> None:
    def answer(person: Any) -> bytes:
        who = urlsafe_base64_encode(force_bytes(person))
        return Client().get(reverse("console-welcome", args=[who, "c0ffee-00"])).content

    assert answer(invited.membership.user.pk) == answer(uuid4())


@pytest.mark.parametrize("password", ["", "short", "password123", "1234567890"])
def test_weak_password_is_refused_and_the_link_lives_on(invited: Any, password: str) -> None:
    assert Client().post(invited.welcome, {"password": password}).status_code == 400
    assert Client().post(invited.welcome, PASSWORD).status_code == 302


def test_link_is_never_kept_by_a_cache(invited: Any) -> None:
    assert "no-store" in Client().get(invited.welcome)["Cache-Control"]


def test_somebody_elses_login_ends_with_the_link(invited: Any, owner: Any) -> None:
    guest = Client()
    guest.force_login(owner)
    guest.post(invited.welcome, PASSWORD)
    assert guest.session["_auth_user_id"] == str(invited.membership.user.pk)


def test_post_from_another_site_is_refused(invited: Any) -> None:
    assert Client(enforce_csrf_checks=True).post(invited.welcome, PASSWORD).status_code == 403
