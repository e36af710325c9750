"""Sign in: in the browser with PKCE and a state, or with a code on another device."""

import base64
import hashlib
import hmac
import secrets as dice
import sys
import time
import urllib.parse

sys.path.insert(0, "/sandbox/lib")
sys.path.insert(0, "/sandbox/skill/scripts")
import tokens

from silas_skill.account import Failure, format_moment, read_event, run_setup, secrets, settings, show_step


def talk(start):
    held = secrets()
    more = settings().get("scopes", "").split()
    wanted = list(dict.fromkeys([*start.get("initial_permissions", []), *start.get("incremental_scopes", []), *more]))
    if settings().get("confidential") and not held.get("client_secret"):
        held = {**held, **_ask_for_client_secret()}
    sign_in = _by_code if start.get("auth_strategy") == "device_code" else _by_browser
    asked_at = time.time()
    answer = sign_in(start, wanted, held.get("client_secret", ""))
    until = tokens.keep(answer, asked_at, held)
    granted = str(answer.get("scope") or " ".join(wanted)).split()
    return {
        "permissions_granted": granted,
        "provider": settings().get("service", ""),
        "token_expires_at": format_moment(until),
        "summary": "Signed in.",
    }


def _ask_for_client_secret():
    request = {
        "name": "client_secret",
        "label": "Client secret",
        "input_hint": "as the service showed it when the app was registered",
        "guidance": {"instructions": "Copy the client secret of the app that was registered at the service."},
    }
    if show_step("client_secret", "secure_input", wait=True, request=request).get("success") is False:
        raise Failure("consent_denied", "The client secret was not given.")
    return secrets()


def _by_browser(start, wanted, client_secret):
    """RFC 6749 and RFC 7636: the code is worth nothing without the verifier, which never leaves this process."""
    verifier, state = dice.token_urlsafe(48), start.get("state") or dice.token_urlsafe(24)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    fields = {
        "response_type": "code",
        "client_id": settings()["client_id"],
        "redirect_uri": start["redirect_uri"],
        "scope": " ".join(wanted),
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    join = "&" if "?" in settings()["authorization_url"] else "?"
    url = settings()["authorization_url"] + join + urllib.parse.urlencode(fields)
    came = show_step("redirect", "browser_redirect", wait=True, auth_url=url)
    if not hmac.compare_digest(str(came.get("state", "")).encode(), state.encode()):
        raise Failure("unknown", "The browser came back with an answer to another question. Nothing was connected.")
    if came.get("error"):
        raise tokens.failure_of(came["error"])
    if not came.get("code"):
        raise Failure("unknown", "The browser came back without a code.")
    grant = {
        "grant_type": "authorization_code",
        "code": came["code"],
        "redirect_uri": start["redirect_uri"],
        "code_verifier": verifier,
    }
    return tokens.token(grant, client_secret)


def _by_code(start, wanted, client_secret):
    """RFC 8628. Asked as often as the service allows, until the code runs out."""
    said, _ = tokens.post(settings()["device_url"], {"scope": " ".join(wanted)}, client_secret)
    life, pause = _bounded(said.get("expires_in"), 600, 3600), _bounded(said.get("interval"), 5, 600)
    try:
        url, code = said.get("verification_uri_complete") or said["verification_uri"], said["user_code"]
        grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": said["device_code"]}
    except KeyError:
        raise Failure("service_unavailable", "The service answered without a code.") from None
    shown = {"verification_url": url, "user_code": code, "expires_in": life, "poll_interval": pause}
    show_step("device", "device_code", wait=False, **shown)
    ends = time.monotonic() + life
    while time.monotonic() < ends:
        read_event(pause)
        try:
            return tokens.token(grant, client_secret)
        except tokens.Pending as pending:
            pause += 5 if pending.slower else 0
    raise tokens.failure_of("expired_token")


def _bounded(value, usual, most):
    return min(max(int(value), 1), most) if str(value).isdigit() else usual


run_setup(talk)
