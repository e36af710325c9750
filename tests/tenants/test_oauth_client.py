"""A third party's client (Authlib) gets and uses its tokens against a live server, as its documentation says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

from apps.tenants.enums import KeyScope
from tests.events.conftest import Web
from tests.factories.console import browser
from tests.factories.oauth import CALLBACK, make_app
from tests.ports import free_port


@pytest.fixture(scope="module")
def web(migrated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    web = Web(free_port(), tmp_path_factory.mktemp("web") / "log")
    web.start()
    yield web
    web.kill()


def consent(address: str, user: Any) -> str:
    """Open the consent page in the member's session, press Allow, and return where the browser is sent."""
    session = browser(user).cookies["sessionid"].value
    with httpx2.Client(cookies={"sessionid": session}) as http:
        page = http.get(address)
        assert page.status_code == 200, page.text
        token = page.text.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        headers = {"origin": "://".join(urlsplit(address)[:2])}
        answer = http.post(address, data={"csrfmiddlewaretoken": token, "decision": "allow"}, headers=headers)
    assert answer.status_code == 302
    return str(answer.headers["location"])


@pytest.mark.parametrize("confidential", [True, False])
def test_authlib_gets_refreshes_and_revokes_tokens(web: Web, tenant: Any, agent: Any, confidential: bool) -> None:
    found = httpx2.get(f"{web.url}/.well-known/oauth-authorization-server").json()
    assert found["issuer"] == web.url
    app = make_app(tenant, KeyScope.SESSIONS_READ, KeyScope.CARDS_READ, confidential=confidential)
    client = OAuth2Session(
        app.app.client_id,
        app.secret or None,
        token_endpoint_auth_method="client_secret_basic" if confidential else "none",
        redirect_uri=CALLBACK,
        scope="sessions:read",
        code_challenge_method="S256",
    )
    verifier = generate_token(64)
    address, state = client.create_authorization_url(found["authorization_endpoint"], code_verifier=verifier)
    location = consent(address, agent)
    assert location.startswith(f"{CALLBACK}?")
    answer = parse_qs(urlsplit(location).query)
    assert answer["iss"] == [web.url]
    assert answer["state"] == [state]
    token = client.fetch_token(
        found["token_endpoint"], authorization_response=location, state=state, code_verifier=verifier
    )
    assert token["scope"] == "sessions:read"
    assert client.get(f"{web.url}/api/v1/sessions").status_code == 200
    assert client.get(f"{web.url}/api/v1/cards").status_code == 403
    renewed = client.refresh_token(found["token_endpoint"])
    assert renewed["refresh_token"] != token["refresh_token"]
    assert client.get(f"{web.url}/api/v1/sessions").status_code == 200
    revoked = client.revoke_token(found["revocation_endpoint"], token=renewed["refresh_token"])
    assert revoked.status_code == 200
    assert client.get(f"{web.url}/api/v1/sessions").status_code == 401


def test_authlib_acts_as_the_app(web: Web, tenant: Any) -> None:
    app = make_app(tenant, KeyScope.SESSIONS_READ, confidential=True)
    client = OAuth2Session(app.app.client_id, app.secret)
    token = client.fetch_token(f"{web.url}/oauth/token", grant_type="client_credentials")
    assert token["expires_in"] <= 3600
    assert client.get(f"{web.url}/api/v1/sessions").status_code == 200
