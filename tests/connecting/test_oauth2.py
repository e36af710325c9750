"""Signing in by OAuth 2 with the shipped skill, against a real server: both ways, and what goes wrong on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sandbox import Choice, configure
from tests.connecting.driving import Driven
from tests.services import oauth
from tests.services.oauth import CALLBACK, CLIENT_SECRET, Service

Make = Callable[..., Driven]


@pytest.fixture(scope="module")
def running() -> Iterator[Service]:
    with oauth.serving() as service:
        yield service


@pytest.fixture
def service(running: Service) -> Iterator[Service]:
    configure(Choice(egress_private=(running.place,)))
    running.deny = running.slow = running.revoke_refresh = running.down = False
    running.skew, running.life = 0, 3600
    running.tokens.clear()
    yield running
    configure(Choice())


@pytest.fixture
def made(service: Service) -> Make:
    return lambda **more: Driven("generic-oauth2", {**service.settings, **more}, (service.place,))


@pytest.fixture
def by_code(service: Service) -> Driven:
    return Driven("generic-oauth2", service.device_settings, (service.place,))


def redirected(
    driven: Driven, service: Service, came: Callable[[dict[str, str]], dict[str, str]] = dict, **start: Any
) -> Any:
    start = {"redirect_uri": CALLBACK, "initial_permissions": ["openid"], **start}
    return driven.set_up("browser_redirect", lambda step: came(service.sign_in(step["auth_url"])), **start)


def entered(driven: Driven, service: Service) -> Any:
    def enter(step: dict[str, Any]) -> None:
        service.enter(step["user_code"])

    return driven.set_up("device_code", enter, initial_permissions=["openid", "email"])


def failure_of(event: dict[str, Any]) -> str:
    return str(event["failure"]["failure_type"])


def test_browser_sign_in_is_completed_and_probed(made: Make, service: Service) -> None:
    last = redirected(driven := made(), service)
    probe = driven.ask("probe", connection_id="1", capability="")
    assert last["type"] == "completion"
    assert last["connection_payload"]["permissions_granted"] == ["openid"]
    assert probe["success"] is True
    assert probe["identity"] == "anna@example.org"


def test_browser_sign_in_says_the_protocol_word_for_word(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    assert [(event["type"], event.get("step_id")) for event in driven.said] == [
        ("setup_step", "redirect"),
        ("await_input", "redirect"),
        ("completion", None),
    ]
    assert driven.said[0]["step"]["type"] == "browser_redirect"


def test_browser_sign_in_proves_who_asked_with_s256(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    assert "code_challenge_method=S256" in driven.said[0]["step"]["auth_url"]
    assert "code_verifier=" in service.asked[-1]
    assert "code_verifier" not in str(driven.said)


def test_tokens_come_by_their_own_way_alone(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    assert driven.secrets["access_token"].startswith("access-")
    assert driven.secrets["access_token"] not in str(driven.said)


def test_code_on_another_device_signs_in(by_code: Driven, service: Service) -> None:
    last = entered(by_code, service)
    assert last["type"] == "completion"
    assert by_code.said[0]["step"]["type"] == "device_code"
    assert by_code.said[0]["step"]["verification_url"].startswith(service.url)


def test_discovery_tells_the_way_that_the_settings_allow(made: Make, by_code: Driven) -> None:
    assert made().ask("discover", identity_hint={})["auth_strategy"] == "browser_redirect"
    assert by_code.ask("discover", identity_hint={})["auth_strategy"] == "device_code"


def test_client_secret_is_asked_for_in_a_secure_field(made: Make, service: Service) -> None:
    driven = made(client_id="confidential", confidential=True)
    steps = {
        "secure_input": lambda _: {"success": True},
        "browser_redirect": lambda step: service.sign_in(step["auth_url"]),
    }
    last = driven.set_up(
        "browser_redirect",
        lambda step: steps[step["type"]](step),
        secret={"client_secret": CLIENT_SECRET},
        redirect_uri=CALLBACK,
        initial_permissions=["openid"],
    )
    assert last["type"] == "completion"
    assert driven.ask("refresh_token", connection_id="1")["success"] is True


def test_more_permissions_are_asked_for_with_those_there_are(made: Make, service: Service) -> None:
    last = redirected(made(), service, initial_permissions=["openid"], incremental_scopes=["email", "openid"])
    assert last["connection_payload"]["permissions_granted"] == ["openid", "email"]


def test_wrong_state_ends_it_before_any_token(made: Make, service: Service) -> None:
    last = redirected(driven := made(), service, lambda came: {**came, "state": "another"})
    assert failure_of(last) == "unknown"
    assert driven.secrets == {}
    assert service.tokens == []


def test_state_of_the_platform_is_used_when_it_gives_one(made: Make, service: Service) -> None:
    last = redirected(driven := made(), service, state="the-platforms-own-state")
    assert last["type"] == "completion"
    assert "state=the-platforms-own-state" in driven.said[0]["step"]["auth_url"]


def test_code_that_was_used_before_is_worth_nothing(made: Make, service: Service) -> None:
    spent: dict[str, str] = {}
    redirected(made(), service, lambda came: spent.update(came) or came)
    last = redirected(made(), service, lambda came: {**came, "code": spent["code"]})
    assert failure_of(last) == "token_revoked"


def test_no_in_the_browser_is_told_as_such(made: Make, service: Service) -> None:
    service.deny = True
    assert failure_of(redirected(made(), service)) == "consent_denied"


def test_no_on_the_other_device_is_told_as_such(by_code: Driven, service: Service) -> None:
    service.deny = True
    assert failure_of(entered(by_code, service)) == "consent_denied"


def test_token_endpoint_that_is_down_is_a_failure_of_the_service(made: Make, service: Service) -> None:
    def goes_down(came: dict[str, str]) -> dict[str, str]:
        service.down = True
        return came

    assert failure_of(redirected(made(), service, goes_down)) == "service_unavailable"


def test_refresh_hands_a_new_token_back_and_the_old_one_is_spent(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    before = dict(driven.secrets)
    told = driven.ask("refresh_token", connection_id="1")
    assert told["success"]
    assert driven.secrets["access_token"] != before["access_token"]
    driven.secrets["refresh_token"] = before["refresh_token"]
    assert driven.ask("refresh_token", connection_id="1")["failure"]["failure_type"] == "token_revoked"


def test_refresh_that_was_revoked_says_so_and_recovery_too(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    service.revoke_refresh = True
    assert driven.ask("refresh_token", connection_id="1")["failure"]["failure_type"] == "token_revoked"
    assert driven.ask("recover", connection_id="1", error="expired")["failure"]["failure_type"] == "token_revoked"


def test_refresh_while_the_service_is_down_loses_nothing(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    service.down, before = True, dict(driven.secrets)
    assert driven.ask("refresh_token", connection_id="1")["failure"]["failure_type"] == "service_unavailable"
    assert driven.secrets == before


@pytest.mark.parametrize("hours", [-26, 26])
def test_clock_of_the_service_does_not_matter_and_is_warned_about(made: Make, service: Service, hours: int) -> None:
    service.skew = hours * 3600
    last = redirected(driven := made(), service)
    ends = datetime.fromisoformat(last["connection_payload"]["token_expires_at"])
    health = driven.ask("health_check", connection_id="1")
    assert timedelta(minutes=50) < ends - datetime.now(UTC) < timedelta(hours=1)
    assert health["healthy"]
    assert "minutes apart" in health["warnings"][0]


def test_health_of_a_token_that_is_refused_is_a_failure(made: Make, service: Service) -> None:
    redirected(driven := made(), service)
    service.tokens.clear()
    health = driven.ask("health_check", connection_id="1")
    assert health["healthy"] is False
    assert health["failure"]["failure_type"] == "token_revoked"


def test_cancel_ends_the_script_and_leaves_nothing(by_code: Driven, service: Service) -> None:
    from sandbox import open_session

    with open_session(by_code._spec("scripts/setup.py", {})) as line:
        line.send_line('{"type": "start", "auth_strategy": "device_code", "initial_permissions": ["openid"]}')
        assert "device_code" in (line.read_line(60) or "")
        line.send_line('{"type": "cancel", "reason": "user_cancelled"}')
        assert line.read_line(60) is None
    result = line.close()
    assert result.exit_code == 0
    assert result.secret_out is None
    assert service.tokens == []
