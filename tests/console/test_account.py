"""My account: password, active sessions, and emails for a forgotten password."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from channels.layers import get_channel_layer
from django.core import mail
from django.test import Client
from django.urls import reverse

from apps.bus.enums import Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.console.pages.login import ratelimit
from apps.tenants import logins, resets
from apps.tenants.emails import MOST_ATTEMPTS, enqueue
from apps.tenants.enums import EmailKind, EmailState
from apps.tenants.models import Letter, Login, Totp, User
from kernel import live
from kernel.clock import now
from kernel.tenancy import INSTALLATION, in_thread, tenant_scope
from tests.factories.accounts import (
    HOST,
    PASSWORD,
    add_app,
    app_of,
    guest,
    is_in,
    link_in,
    log_in,
    send_letters,
    sent_to,
)
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.console import browser
from tests.factories.tenants import make_user
from tests.rivals import race

NEW = "a-new-long-password"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


# --- password


def test_password_is_changed_with_the_old_one(owner: Any) -> None:
    browser(owner).post(reverse("console-account-password"), {"password": PASSWORD, "new_password": NEW})
    owner.refresh_from_db()
    assert owner.check_password(NEW)


@pytest.mark.parametrize(("old", "new"), [("wrong", NEW), (PASSWORD, "x")])
def test_password_stays_when_the_old_is_wrong_or_the_new_is_weak(owner: Any, old: str, new: str) -> None:
    browser(owner).post(reverse("console-account-password"), {"password": old, "new_password": new})
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)


def test_changed_password_ends_every_other_login_and_keeps_this_one(owner: Any) -> None:
    here, there = browser(owner), browser(owner)
    here.post(reverse("console-account-password"), {"password": PASSWORD, "new_password": NEW})
    assert here.get(reverse("console-inbox")).status_code == 200
    assert there.get(reverse("console-inbox")).status_code == 302
    assert [row.session_key for row in logins.logins_of(owner)] == [here.session.session_key]


# --- where one is logged in


def test_login_is_listed_with_its_device_and_a_shortened_address(owner: Any) -> None:
    client = Client(REMOTE_ADDR="203.0.113.9", headers={"user-agent": FIREFOX})
    log_in(client, owner)
    page = client.get(reverse("console-account")).content.decode()
    assert "Firefox on Linux" in page and "203.0.113.x" in page and "203.0.113.9" not in page


@pytest.mark.parametrize(
    ("address", "short"),
    [("2001:db8:7:8::1", "2001:0db8:0007:x"), ("::ffff:203.0.113.9", "203.0.113.x"), ("nonsense", ""), ("", "")],
)
def test_address_is_shortened(address: str, short: str) -> None:
    assert logins.shortened(address) == short


def test_login_of_somebody_else_is_not_listed(owner: Any, agent: Any) -> None:
    browser(agent)
    assert logins.logins_of(owner) == []


def test_ended_login_is_nobody_from_then_on(owner: Any) -> None:
    here, there = browser(owner), browser(owner)
    row = Login.objects.get(session_key=there.session.session_key)
    here.post(reverse("console-login-end", args=[row.pk]))
    assert there.get(reverse("console-inbox")).status_code == 302


def test_login_of_somebody_else_cannot_be_ended(owner: Any, agent: Any) -> None:
    theirs = browser(agent)
    row = Login.objects.get(session_key=theirs.session.session_key)
    assert browser(owner).post(reverse("console-login-end", args=[row.pk])).status_code == 404
    assert theirs.get(reverse("console-inbox")).status_code == 200


def test_all_others_end_and_this_one_stays(owner: Any) -> None:
    here, others = browser(owner), [browser(owner), browser(owner)]
    here.post(reverse("console-logins-end"))
    assert [one.get(reverse("console-inbox")).status_code for one in (here, *others)] == [200, 302, 302]


def test_log_out_takes_the_login_off_the_list(owner: Any) -> None:
    client = browser(owner)
    client.post(reverse("console-logout"))
    assert not Login.objects.filter(user=owner).exists()


def test_ended_login_is_told_to_its_sockets(owner: Any) -> None:
    client = browser(owner)
    row = Login.objects.get(session_key=client.session.session_key)

    async def heard() -> Any:
        layer = get_channel_layer()
        name = await layer.new_channel()
        await layer.group_add(logins.group_of_login(row.pk), name)
        await in_thread(logins.end, row.pk, user=owner)
        return await asyncio.wait_for(layer.receive(name), 20)

    events = live.unpack_events(asyncio.run(heard()), attending=False)
    assert [event["type"] for event in events] == ["console.ended"]


def test_sweep_finds_logins_that_ended(owner: Any) -> None:
    browser(owner)
    row, gone = Login.objects.get(user=owner), str(uuid4())
    assert logins.ended_among({str(row.pk), gone}) == {gone}


# --- a forgotten password


def _ask(user_or_address: Any, client: Client | None = None) -> Any:
    address = getattr(user_or_address, "email", user_or_address)
    return (client or guest()).post(reverse("console-forgotten"), {"username": address})


def _link(owner: Any) -> str:
    _ask(owner)
    return link_in(sent_to(owner.email)[-1])


def test_letter_brings_a_link_that_sets_the_password(owner: Any) -> None:
    guest().post(_link(owner), {"password": NEW})
    owner.refresh_from_db()
    assert owner.check_password(NEW)


def test_letter_is_text_and_html(owner: Any) -> None:
    _ask(owner)
    (letter,) = sent_to(owner.email)
    assert [kind for _, kind in letter.alternatives] == ["text/html"] and link_in(letter) in letter.alternatives[0][0]


def test_answer_for_an_unknown_address_is_the_same(owner: Any) -> None:
    known, unknown = _ask(owner), _ask(f"{uuid4().hex}@example.test")
    assert known.status_code == unknown.status_code
    assert known.content == unknown.content


def test_unknown_address_gets_no_letter(database: None) -> None:
    address = f"{uuid4().hex}@example.test"
    _ask(address)
    assert sent_to(address) == []


def test_link_is_good_once(owner: Any) -> None:
    link = _link(owner)
    guest().post(link, {"password": NEW})
    assert guest().post(link, {"password": "yet-another-password"}).status_code == 404


def test_rivals_with_one_link_do_not_both_set_it(owner: Any) -> None:
    mine, theirs = (User.objects.get(pk=owner.pk) for _ in range(2))
    answers = race(lambda: resets.set_new_password(mine, "one"), lambda: resets.set_new_password(theirs, "two"))
    assert sorted(map(str, answers)) == ["False", "True"]


def test_link_is_dead_after_an_hour(owner: Any) -> None:
    link = _link(owner)
    with time_machine.travel(now() + timedelta(minutes=61)):
        assert guest().get(link).status_code == 404


def test_link_is_dead_after_a_login(owner: Any) -> None:
    link = _link(owner)
    log_in(guest(), owner)
    assert guest().get(link).status_code == 404


def test_welcome_link_is_no_reset_link(owner: Any) -> None:
    link = _link(owner)
    assert guest().get(link.replace("/login/new-password/", "/welcome/")).status_code == 404


def test_new_password_ends_every_login(owner: Any) -> None:
    thief, link = browser(owner), _link(owner)
    guest().post(link, {"password": NEW})
    assert thief.get(reverse("console-inbox")).status_code == 302


def test_reset_is_no_way_around_the_second_factor(owner: Any) -> None:
    add_app(owner)
    link, client = _link(owner), guest()
    assert client.post(link, {"password": NEW})["Location"] == reverse("console-second")
    assert not is_in(client, owner)


def test_weak_password_leaves_the_link_alive(owner: Any) -> None:
    link = _link(owner)
    assert guest().post(link, {"password": "short"}).status_code == 400
    assert guest().get(link).status_code == 200


def test_letters_are_throttled_by_account_known_or_not(owner: Any) -> None:
    for person in (owner, f"{uuid4().hex}@example.test"):
        codes = [_ask(person).status_code for _ in range(ratelimit.MAX_EMAILS + 1)]
        assert codes == [200] * ratelimit.MAX_EMAILS + [429]


def test_account_without_a_password_gets_no_letter(owner: Any) -> None:
    """A member with only the company's login would have a way around it."""
    owner.set_unusable_password()
    owner.save()
    _ask(owner)
    assert sent_to(owner.email) == []


def test_link_leads_to_where_the_console_is_and_not_where_a_header_says(owner: Any, settings: Any) -> None:
    settings.PASSKEY_ORIGIN = f"http://{HOST}"
    _ask(owner, Client(headers={"host": "evil.test"}))
    assert "evil.test" not in sent_to(owner.email)[0].body


# --- emails that cannot be sent


@pytest.fixture
def letter(owner: Any) -> Letter:
    return enqueue(EmailKind.LOCKED, owner.email, origin=f"http://{HOST}")


def test_letter_that_could_not_be_sent_waits_for_another_try(letter: Letter, settings: Any) -> None:
    settings.EMAIL_BACKEND = "tests.fakes.mail.Broken"
    send_letters()
    letter.refresh_from_db()
    assert letter.state == EmailState.WAITING
    assert letter.error_code == "ConnectionRefusedError"
    assert letter.attempts == 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert sent_to(letter.address) == []


def test_letter_goes_out_once_the_mail_server_is_back(letter: Letter, settings: Any) -> None:
    settings.EMAIL_BACKEND = "tests.fakes.mail.Broken"
    send_letters()
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    let_waits_pass(INSTALLATION)
    assert len(sent_to(letter.address)) == 1
    letter.refresh_from_db()
    assert letter.state == EmailState.SENT


def test_letter_whose_sender_died_is_sent(letter: Letter) -> None:
    with tenant_scope(INSTALLATION):
        lease_any(Queue.TRUSTED, consumer="doomed", scope_id=f"account_mail:{letter.pk}")
    assert sent_to(letter.address) == []
    let_leases_run_out(INSTALLATION)
    assert len(sent_to(letter.address)) == 1


def test_letter_that_cannot_be_written_is_given_up_and_stops_no_other(letter: Letter) -> None:
    """Its company is gone from under it."""
    broken = enqueue(EmailKind.INVITATION, letter.address, origin="")
    for _ in range(MAX_ATTEMPTS):
        send_letters()
        let_waits_pass(INSTALLATION)
    broken.refresh_from_db()
    assert broken.state == EmailState.FAILED
    assert broken.error_code == "AssertionError"
    letter.refresh_from_db()
    assert letter.state == EmailState.SENT


def test_letter_that_fails_for_hours_is_given_up_and_shown(letter: Letter, settings: Any) -> None:
    settings.EMAIL_BACKEND = "tests.fakes.mail.Broken"
    Letter.objects.filter(pk=letter.pk).update(attempts=MOST_ATTEMPTS - 1)
    send_letters()
    letter.refresh_from_db()
    assert letter.state == EmailState.FAILED
    assert letter.error_code == "ConnectionRefusedError"


def test_letter_without_a_mail_server_is_given_up(letter: Letter, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    send_letters()
    letter.refresh_from_db()
    assert letter.state == EmailState.FAILED
    assert letter.error_code == "no_mail_server"


def test_rivals_send_a_letter_once(letter: Letter) -> None:
    race(send_letters, send_letters, send_letters)
    assert len([one for one in mail.outbox if one.to == [letter.address]]) == 1


# --- errors are shown at their fields


def _pressed(user: Any, name: str, **data: str) -> tuple[int, str]:
    answer = browser(user).post(reverse(f"console-account-{name}"), data)
    return answer.status_code, answer.content.decode()


@pytest.mark.parametrize("name", ["password", "app"])
def test_wrong_password_is_told_at_the_field_of_its_form(owner: Any, name: str) -> None:
    status, page = _pressed(owner, name, password="wrong", new_password=NEW)
    form = page.partition(f'action="{reverse(f"console-account-{name}")}"')[2].partition("</form>")[0]
    assert status == 403
    assert page.count("Wrong password") == 1
    assert 'aria-invalid="true"' in form and "Wrong password" in form and 'class="notice bad" role="alert"' not in page


def test_weak_password_is_told_at_the_new_one(owner: Any) -> None:
    status, page = _pressed(owner, "password", password=PASSWORD, new_password="x")
    assert status == 409
    assert 'id="weak-password"' in page
    assert 'id="wrong-password"' not in page


def test_wrong_code_is_told_at_its_field(owner: Any) -> None:
    _pressed(owner, "app", password=PASSWORD)
    status, page = _pressed(owner, "app-confirm", code="000000")
    assert status == 409
    assert 'id="wrong-code"' in page


# --- superusers without a company


def test_lone_superuser_sets_up_a_second_factor_and_is_asked_for_it(database: None) -> None:
    root = make_user(is_superuser=True)
    client = guest()
    log_in(client, root)
    client.post(reverse("console-account-app"), {"password": PASSWORD})
    app = app_of(root)
    page = client.post(reverse("console-account-app-confirm"), {"code": app.now()}).content.decode()
    assert "Your recovery codes" in page and "Log out" in page
    Totp.objects.filter(user=root).update(last_step=0)
    again = guest()
    assert log_in(again, root, next="/admin/")["Location"] == reverse("console-second")
    assert again.get("/admin/").status_code == 302 and not is_in(again, root)
    again.post(reverse("console-second"), {"code": app.now()})
    assert again.get("/admin/").status_code == 200


def test_lone_superuser_with_a_wrong_password_adds_no_factor(database: None) -> None:
    status, page = _pressed(make_user(is_superuser=True), "app", password="wrong")
    assert status == 403
    assert 'id="wrong-password"' in page
    assert "data:image" not in page


def test_person_of_no_company_has_no_account_page(database: None) -> None:
    assert browser(make_user()).get(reverse("console-account")).status_code == 403


# --- language of emails


def test_email_is_in_the_recipients_language(owner: Any) -> None:
    owner.language = "de"
    owner.save(update_fields=["language"])
    enqueue(EmailKind.RESET, owner.email, origin=HOST)
    send_letters()
    [message] = sent_to(owner.email)
    assert message.subject == "Setzen Sie Ihr Passwort zurück"
    assert '<html lang="de">' in str(message.alternatives[0][0])
