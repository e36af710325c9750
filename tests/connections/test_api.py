"""Connections over HTTP: strangers and foreign ids first; and a browser that comes back from the service."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.approvals.models import Card
from apps.connections import credentials
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Credential, SetupAnswer, SetupRun
from apps.connections.services import lifecycle
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.connections.links import link, make_skill, said_yes
from tests.connections.test_setup import Beside, credentials_of
from tests.factories.connections import make_connection, make_setup, reread
from tests.factories.console import browser

PATH = "/api/v1/connections"
REDIRECT = """
start = hear()
import hashlib
verifier = "v" * 43
address = "https://login.example.test/authorize?state=" + start["state"] + "&redirect_uri=" + start["redirect_uri"]
answer = ask("go", type="browser_redirect", auth_url=address)["payload"]
if answer.get("error"):
    say({"type": "failure", "failure": {"failure_type": "consent_denied", "service": "S", "message": "no"}})
    sys.exit(0)
hand_over(**{"token": answer["code"] + verifier})
complete(permissions_granted=start["initial_permissions"])
"""


def requests_about(row: Any) -> list[tuple[str, str, dict[str, Any]]]:
    one = f"{PATH}/{row}"
    return [
        ("get", one, {}),
        *[("post", f"{one}/{verb}", {}) for verb in ("pause", "resume", "reconnect", "choose")],
        ("get", f"{one}/setup", {}),
        ("post", f"{one}/setup", {"step_id": "a", "action": "done"}),
        ("delete", f"{one}/setup", {}),
        ("delete", one, {}),
    ]


def call(client: Any, method: str, path: str, body: dict[str, Any], **headers: str) -> int:
    if method == "get":
        return int(client.get(path, headers=headers).status_code)
    return int(getattr(client, method)(path, body, content_type="application/json", headers=headers).status_code)


def test_foreign_and_unknown_connections_are_not_found(tenant: Any, owner: Any, other_tenant: Any) -> None:
    theirs = make_connection(other_tenant)
    make_setup(theirs)
    client = browser(owner)
    assert {call(client, *asked) for row in (theirs.pk, uuid4()) for asked in requests_about(row)} == {404}


def test_strangers_and_viewers_change_nothing(tenant: Any, viewer: Any, stranger: Any) -> None:
    row = make_connection(tenant)
    changes = [asked for asked in requests_about(row.pk) if asked[0] != "get"]
    refused = {call(browser(user), *asked) for user in (viewer, stranger) for asked in changes}
    assert refused == {403}
    assert call(browser(None), "get", PATH, {}) == 401


def test_connection_is_asked_for_with_a_key_and_shown_without_a_secret(tenant: Any) -> None:
    make_skill(tenant)
    with tenant_scope(tenant):
        key = create_api_key("Test", actor="system").key
    headers = {"authorization": f"Bearer {key}"}
    body = {"skill": "test-link", "name": "Shop mail", "settings": {"endpoint": "https://mail.example.test"}}
    client = browser(None)
    made = client.post(PATH, body, content_type="application/json", headers=headers)
    assert made.status_code == 201
    assert made.json()["status"] == "proposed"
    with tenant_scope(tenant):
        credentials.store(made.json()["id"], {"token": "canary-1"})
    listed = client.get(PATH, headers=headers)
    assert [each["id"] for each in listed.json()] == [made.json()["id"]]
    assert "canary-1" not in listed.content.decode()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"skill": "no-such-skill", "name": "x"}, 409),
        ({"skill": "test-link", "name": "x", "permissions": ["Root"]}, 422),
        ({"skill": "test-link", "name": "x", "health_check": "often"}, 400),
        ({"skill": "test-link", "name": "x", "settings": {"a": {"b": "c"}}}, 400),
        ({"skill": "test-link"}, 400),
    ],
)
def test_wish_that_does_not_fit_is_refused(tenant: Any, owner: Any, body: dict[str, Any], status: int) -> None:
    make_skill(tenant)
    assert call(browser(owner), "post", PATH, body) == status


def test_removed_connection_is_gone_with_its_credentials(tenant: Any, owner: Any) -> None:
    row = make_connection(tenant)
    with tenant_scope(tenant):
        credentials.store(row.pk, {"token": "x"})
    assert call(browser(owner), "delete", f"{PATH}/{row.pk}", {}) == 204
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0
    assert call(browser(owner), "get", f"{PATH}/{row.pk}", {}) == 404


def test_paused_connection_is_resumed(tenant: Any, owner: Any) -> None:
    row = make_connection(tenant)
    client = browser(owner)
    assert [call(client, "post", f"{PATH}/{row.pk}/{verb}", {}) for verb in ("pause", "resume", "resume")] == [
        200,
        200,
        409,
    ]
    assert reread(row).status == ConnectionStatus.ACTIVE


def back(client: Any, **said: str) -> int:
    return int(client.get("/connections/callback", said).status_code)


def test_browser_that_comes_back_brings_the_code_once_and_to_its_own_setup(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=REDIRECT)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    state = str(beside.asks().state_token)
    mine, another = browser(owner), browser(owner)
    assert back(mine, state=state, code="c") == 404  # nobody opened the service's page here
    with tenant_scope(tenant):
        lifecycle.open_redirect(row.pk, user=owner, browser=mine.session.session_key)
    wrong = [back(mine, state=str(uuid4()), code="c"), back(mine, state="x"), back(another, state=state, code="c")]
    assert wrong == [404, 404, 404]
    assert back(mine, state=state, code="code-1") == 302
    assert beside.ends().state == SetupState.DONE
    assert back(mine, state=state, code="code-2") == 409
    assert credentials_of(tenant, row) == {"token": "code-1" + "v" * 43}
    with tenant_scope(tenant):
        assert SetupAnswer.objects.count() == 0


def test_refusal_at_the_service_fails_the_setup(tenant: Any, owner: Any) -> None:
    row = link(tenant, setup=REDIRECT)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    beside.asks()
    client = browser(owner)
    with tenant_scope(tenant):
        lifecycle.open_redirect(row.pk, user=owner, browser=client.session.session_key)
    assert back(client, state=str(setup.state_token), error="access_denied") == 302
    assert beside.ends().failure["failure_type"] == "consent_denied"


def test_setup_is_called_off_over_http(tenant: Any, owner: Any) -> None:
    row = make_connection(tenant, status=ConnectionStatus.CONNECTING)
    make_setup(row)
    client = browser(owner)
    assert [call(client, "delete", f"{PATH}/{row.pk}/setup", {}) for _ in range(2)] == [200, 409]
    with tenant_scope(tenant):
        assert SetupRun.objects.get().state == SetupState.CANCELLED


def test_more_permissions_open_a_card_once(tenant: Any, owner: Any, other_tenant: Any, agent: Any) -> None:
    row = make_connection(tenant)
    address, body = f"{PATH}/{row.pk}/widen", {"permissions": ["Mail.Send"], "reason": "Answers are sent as mails."}
    with tenant_scope(tenant):
        headers = {"authorization": f"Bearer {create_api_key('Test').key}"}
    asked = browser().post(address, body, content_type="application/json", headers=headers)
    assert asked.status_code == 200
    with tenant_scope(tenant):
        assert Card.objects.get().pk == UUID(asked.json()["card"])
    assert browser(owner).post(address, body, content_type="application/json").json() == {"card": None}
    unknown = browser(owner).post(address, {**body, "permissions": ["Root"]}, content_type="application/json")
    assert unknown.status_code == 422
    assert browser(agent).post(address, body, content_type="application/json").status_code == 403
    theirs = f"{PATH}/{make_connection(other_tenant).pk}/widen"
    assert browser(owner).post(theirs, body, content_type="application/json").status_code == 404
