"""Second factors, letters and logins for tests."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pyotp
from django.core import mail
from django.test import Client
from django.urls import reverse

from apps.bus.enums import Queue
from apps.tenants import login_passkeys, second_factors
from apps.tenants.enums import EmailState
from apps.tenants.models import Letter, Totp
from kernel.tenancy import INSTALLATION
from tests.factories.passkeys import ORIGIN, RP_ID, SoftPasskey
from tests.factories.work import Hands

PASSWORD = "a-long-password"
HOST = "localhost:8420"


def guest() -> Client:
    """Somebody who is not logged in, at an internet address of their own."""
    return Client(REMOTE_ADDR=f"test-{uuid4().hex}", headers={"host": HOST})


def log_in(client: Client, user: Any, password: str = PASSWORD, **data: str) -> Any:
    return client.post(reverse("console-login"), {"username": user.email, "password": password, **data})


def is_in(client: Client, user: Any) -> bool:
    return client.session.get("_auth_user_id") == str(user.pk)


def add_app(user: Any) -> tuple[pyotp.TOTP, list[str]]:
    """An authenticator app that counts, whose first code is used up, and the recovery codes that came with it."""
    second_factors.begin_totp(user)
    app = app_of(user)
    codes = second_factors.confirm_totp(user, app.now())
    Totp.objects.filter(user=user).update(last_step=0)
    return app, codes


def app_of(user: Any) -> pyotp.TOTP:
    setup = second_factors.setup_of(user)
    assert setup is not None
    return pyotp.TOTP(setup.secret)


def add_passkey(user: Any, device: SoftPasskey) -> list[str]:
    session: dict[str, Any] = {}
    options = login_passkeys.begin_registration(session, user, rp_id=RP_ID, origin=ORIGIN)
    return login_passkeys.finish_registration(session, user, name="Laptop", credential=device.create(options))


def send_letters() -> None:
    """Send the letters about accounts that are due."""
    companies = Letter.objects.filter(state=EmailState.WAITING).values_list("company_id", flat=True)
    for company_id in set(companies):
        Hands(company_id or INSTALLATION).work(Queue.TRUSTED)


def sent_to(address: str) -> list[Any]:
    """What reached this mailbox, after everything that is due was sent."""
    send_letters()
    return [message for message in mail.outbox if message.to == [address]]


def link_in(message: Any) -> str:
    """The path of the only link in a letter."""
    found = re.search(rf"http://{HOST}(/\S+)", message.body)
    assert found is not None
    return found[1]


def waiting() -> int:
    return Letter.objects.filter(state=EmailState.WAITING).count()
