"""Second factors: a password alone is not enough, and no code works twice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.console.pages.login import ratelimit
from apps.tenants import second_factors
from apps.tenants.models import RecoveryCode, Tenant, Totp
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.accounts import PASSWORD, add_app, add_passkey, app_of, guest, is_in, log_in
from tests.factories.console import browser
from tests.factories.passkeys import SoftPasskey
from tests.rivals import race

SECOND = "/console/login/second/"


def _second(client: Any, code: str) -> Any:
    return client.post(SECOND, {"code": code})


def test_password_alone_lets_nobody_in_who_has_an_app(owner: Any) -> None:
    add_app(owner)
    client = guest()
    assert log_in(client, owner)["Location"] == SECOND
    assert client.get(reverse("console-inbox")).status_code == 302 and not is_in(client, owner)


def test_password_and_code_let_in(owner: Any) -> None:
    app, _ = add_app(owner)
    client = guest()
    log_in(client, owner, next="/console/activity/")
    assert _second(client, app.now())["Location"] == "/console/activity/"
    assert is_in(client, owner) is True


def test_second_step_without_the_first_leads_to_the_login(owner: Any) -> None:
    app, _ = add_app(owner)
    assert _second(guest(), app.now())["Location"] == reverse("console-login")


@pytest.mark.parametrize("code", ["", "000000", "abc", "99999999999999999999", "١٢٣٤٥٦", "\0"])
def test_wrong_code_is_refused(owner: Any, code: str) -> None:
    add_app(owner)
    client = guest()
    log_in(client, owner)
    assert _second(client, code).status_code == 400 and not is_in(client, owner)


def test_code_of_another_person_is_refused(owner: Any, agent: Any) -> None:
    add_app(owner)
    app, _ = add_app(agent)
    client = guest()
    log_in(client, owner)
    assert _second(client, app.now()).status_code == 400


def test_code_is_good_once(owner: Any) -> None:
    app, _ = add_app(owner)
    code = app.now()
    for client in (guest(), again := guest()):
        log_in(client, owner)
        _second(client, code)
    assert not is_in(again, owner)


def test_rivals_with_one_code_do_not_both_get_in(owner: Any) -> None:
    app, _ = add_app(owner)
    code = app.now()
    assert sorted(map(str, race(*[lambda: second_factors.use_totp(owner, code)] * 4))) == ["False"] * 3 + ["True"]


def test_code_before_one_that_was_used_is_refused(owner: Any) -> None:
    app, _ = add_app(owner)
    step = int(now().timestamp()) // 30
    assert second_factors.use_totp(owner, app.generate_otp(step))
    assert not second_factors.use_totp(owner, app.generate_otp(step - 1))


def test_code_of_two_minutes_ago_is_refused(owner: Any) -> None:
    app, _ = add_app(owner)
    assert not second_factors.use_totp(owner, app.generate_otp(int(now().timestamp()) // 30 - 4))


def test_app_that_was_never_confirmed_asks_for_nothing(owner: Any) -> None:
    second_factors.begin_totp(owner)
    client = guest()
    log_in(client, owner)
    assert is_in(client, owner)


def test_guessing_codes_is_throttled_from_everywhere(owner: Any) -> None:
    app, _ = add_app(owner)
    for _ in range(ratelimit.MAX_PER_ACCOUNT):
        client = guest()
        log_in(client, owner)
        _second(client, "000000")
    client = guest()
    log_in(client, owner)
    assert _second(client, app.now()).status_code == 429


def test_guessing_one_persons_codes_leaves_others_alone(owner: Any, agent: Any) -> None:
    for _ in range(ratelimit.MAX_PER_ADDRESS + 1):
        ratelimit.wait_before_code("second", owner.pk)
    assert ratelimit.wait_before_code("second", agent.pk) is None


def test_wrong_code_is_written_down(tenant: Any, owner: Any) -> None:
    add_app(owner)
    client = guest()
    log_in(client, owner)
    _second(client, "000000")
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.SECOND_FACTOR_REFUSED).exists()


def test_second_step_ends_when_the_password_changes(owner: Any) -> None:
    app, _ = add_app(owner)
    client = guest()
    log_in(client, owner)
    owner.set_password("another-long-password")
    owner.save()
    assert _second(client, app.now())["Location"] == reverse("console-login")


def test_second_step_of_a_blocked_person_ends(owner: Any) -> None:
    app, _ = add_app(owner)
    client = guest()
    log_in(client, owner)
    owner.is_active = False
    owner.save()
    assert not is_in(client, owner) and _second(client, app.now())["Location"] == reverse("console-login")


def test_secret_is_not_in_the_row(owner: Any) -> None:
    second_factors.begin_totp(owner)
    assert app_of(owner).secret.encode() not in bytes(Totp.objects.get(user=owner).sealed_secret)


def test_secret_moved_to_another_person_does_not_open(owner: Any, agent: Any) -> None:
    add_app(owner)
    add_app(agent)
    mine = Totp.objects.get(user=owner).sealed_secret
    Totp.objects.filter(user=agent).update(sealed_secret=mine)
    with pytest.raises(Exception, match="could not be opened"):
        second_factors.use_totp(agent, "000000")


# --- recovery codes


def test_recovery_code_lets_in_once(owner: Any) -> None:
    _, codes = add_app(owner)
    first, again = guest(), guest()
    for client in (first, again):
        log_in(client, owner)
        _second(client, codes[0].upper().replace("-", " "))
    assert is_in(first, owner) is True
    assert is_in(again, owner) is False


def test_rivals_with_one_recovery_code_do_not_both_get_in(owner: Any) -> None:
    _, codes = add_app(owner)
    answers = race(*[lambda: second_factors.use_recovery_code(owner, codes[0])] * 4)
    assert answers.count(True) == 1


def test_recovery_code_of_another_person_is_refused(owner: Any, agent: Any) -> None:
    add_app(owner)
    _, codes = add_app(agent)
    assert not second_factors.use_recovery_code(owner, codes[0])


def test_new_recovery_codes_void_the_old(owner: Any) -> None:
    _, codes = add_app(owner)
    second_factors.make_recovery_codes(owner)
    assert not second_factors.use_recovery_code(owner, codes[0])


def test_recovery_codes_stand_as_hashes(owner: Any) -> None:
    _, codes = add_app(owner)
    kept = "".join(RecoveryCode.objects.filter(user=owner).values_list("hashed", flat=True))
    assert len(codes) == 10 and not any(code in kept for code in codes)


# --- passkeys


def _passkey_in(client: Any, device: SoftPasskey, step: str = "first", **data: str) -> Any:
    began = client.post(reverse("console-login-passkey-begin"), {"step": step})
    if began.status_code != 200:
        return began
    answer = device.get(began.json()["options"])
    return client.post(reverse("console-login-passkey-finish"), {"credential": answer, "step": step, **data})


def test_passkey_alone_lets_in(owner: Any) -> None:
    device, client = SoftPasskey(), guest()
    add_passkey(owner, device)
    assert _passkey_in(client, device, next="/console/activity/").json() == {"next": "/console/activity/"}
    assert is_in(client, owner)


def test_passkey_leads_to_no_other_site(owner: Any) -> None:
    device = SoftPasskey()
    add_passkey(owner, device)
    assert _passkey_in(guest(), device, next="//evil.test/").json() == {"next": "/console/"}


def test_passkey_is_a_second_factor(owner: Any) -> None:
    device, client = SoftPasskey(), guest()
    add_passkey(owner, device)
    assert log_in(client, owner)["Location"] == SECOND
    _passkey_in(client, device, "second")
    assert is_in(client, owner)


def test_passkey_of_a_colleague_is_no_second_factor(owner: Any, agent: Any) -> None:
    mine, theirs, client = SoftPasskey(), SoftPasskey(), guest()
    add_passkey(owner, mine)
    add_passkey(agent, theirs)
    log_in(client, owner)
    assert _passkey_in(client, theirs, "second").status_code == 409
    assert not is_in(client, owner) and not is_in(client, agent)


def test_unknown_passkey_lets_nobody_in(database: None) -> None:
    assert _passkey_in(guest(), SoftPasskey()).status_code == 409


def test_passkey_without_its_person_is_refused(owner: Any) -> None:
    device, client = SoftPasskey(), guest()
    add_passkey(owner, device)
    device.flags = 0x01
    assert _passkey_in(client, device).status_code == 409 and not is_in(client, owner)


def test_passkey_answer_from_another_site_is_refused(owner: Any) -> None:
    device = SoftPasskey()
    add_passkey(owner, device)
    device.origin = "https://evil.test"
    assert _passkey_in(guest(), device).status_code == 409


def test_copied_passkey_is_refused(owner: Any) -> None:
    device = SoftPasskey()
    add_passkey(owner, device)
    _passkey_in(guest(), device)
    device.counter = 0
    assert _passkey_in(guest(), device).json()["error"]["code"] == "passkey_counter"


def test_passkey_answer_is_good_once_and_for_its_own_browser_only(owner: Any) -> None:
    device, client, thief = SoftPasskey(), guest(), guest()
    add_passkey(owner, device)
    options = client.post(reverse("console-login-passkey-begin"), {"step": "first"}).json()["options"]
    answer = {"credential": device.get(options), "step": "first"}
    assert thief.post(reverse("console-login-passkey-finish"), answer).status_code == 409
    assert client.post(reverse("console-login-passkey-finish"), answer).status_code == 200


def test_passkey_of_a_blocked_person_lets_nobody_in(owner: Any) -> None:
    device = SoftPasskey()
    add_passkey(owner, device)
    owner.is_active = False
    owner.save()
    assert _passkey_in(guest(), device).status_code == 409


@pytest.mark.parametrize("answer", ["", "{}", "[]", "null", '{"response": {"clientDataJSON": "%%"}}', "[" * 5000])
def test_nonsense_for_an_answer_is_refused(database: None, answer: str) -> None:
    client = guest()
    client.post(reverse("console-login-passkey-begin"), {"step": "first"})
    response = client.post(reverse("console-login-passkey-finish"), {"credential": answer, "step": "first"})
    assert response.status_code == 409


# --- a tenant that requires one


@pytest.fixture
def strict(tenant: Any) -> Any:
    Tenant.objects.filter(pk=tenant.pk).update(second_factor_required=True)
    return tenant


def test_member_without_a_factor_is_led_to_set_one_up(strict: Any, agent: Any) -> None:
    assert browser(agent).get(reverse("console-inbox"))["Location"] == reverse("console-account")


def test_member_without_a_factor_sees_why(strict: Any, agent: Any) -> None:
    assert "requires a second factor" in browser(agent).get(reverse("console-account")).content.decode()


def test_rest_api_is_no_way_around(strict: Any, owner: Any) -> None:
    response = browser(owner).get("/api/v1/gates")
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "second_factor_required"


def test_administration_is_no_way_around(strict: Any, owner: Any) -> None:
    assert browser(owner).get(reverse("admin:index")).status_code == 403


def test_member_with_a_factor_goes_on(strict: Any, agent: Any) -> None:
    add_app(agent)
    assert browser(agent).get(reverse("console-inbox")).status_code == 200


def test_factor_is_set_up_with_the_first_code(strict: Any, agent: Any) -> None:
    client = browser(agent)
    client.post(reverse("console-account-app"), {"password": PASSWORD})
    page = client.post(reverse("console-account-app-confirm"), {"code": app_of(agent).now()}).content.decode()
    assert len(re.findall(r"<li>[a-z2-9]{5}-[a-z2-9]{5}</li>", page)) == 10
    assert client.get(reverse("console-inbox")).status_code == 200


def test_wrong_code_confirms_nothing(agent: Any) -> None:
    client = browser(agent)
    client.post(reverse("console-account-app"), {"password": PASSWORD})
    assert client.post(reverse("console-account-app-confirm"), {"code": "000000"}).status_code == 409
    assert not second_factors.has_totp(agent)


def test_open_session_alone_sets_up_no_app(agent: Any) -> None:
    assert browser(agent).post(reverse("console-account-app"), {"password": "wrong"}).status_code == 403
    assert second_factors.setup_of(agent) is None


def test_first_factor_ends_logins_that_were_never_asked_for_it(agent: Any) -> None:
    thief, client = browser(agent), browser(agent)
    client.post(reverse("console-account-app"), {"password": PASSWORD})
    client.post(reverse("console-account-app-confirm"), {"code": app_of(agent).now()})
    assert thief.get(reverse("console-inbox")).status_code == 302


def test_app_is_removed_with_the_password_only(agent: Any) -> None:
    add_app(agent)
    client = browser(agent)
    client.post(reverse("console-account-app-remove"), {"password": "wrong"})
    assert second_factors.has_totp(agent)
    client.post(reverse("console-account-app-remove"), {"password": PASSWORD})
    assert not second_factors.has_totp(agent)
