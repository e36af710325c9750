"""How are tokens asked for, and what does a refusal mean?"""

import base64
import json
import time
import urllib.parse
from email.utils import parsedate_to_datetime

from silas_skill.account import Failure, call, retry_minutes, return_secrets, settings

# A token is called run out a little before it is: requests take time.
EARLY_SECONDS = 30
LONGEST_LIFE = 10 * 365 * 86_400
SKEW_SECONDS = 300
_KINDS = {
    "access_denied": ("consent_denied", "The sign-in was declined."),
    "expired_token": ("consent_denied", "The code ran out before it was entered."),
    "invalid_grant": ("token_revoked", "The service does not accept the sign-in any more."),
    "unauthorized_client": ("enterprise_policy_block", "The service does not let this app sign anybody in."),
    "admin_policy_enforced": ("enterprise_policy_block", "The organization does not allow this app."),
    "interaction_required": ("mfa_required", "The service wants another factor."),
    "mfa_required": ("mfa_required", "The service wants another factor."),
    "temporarily_unavailable": ("service_unavailable", "The service is not available at the moment."),
    "server_error": ("service_unavailable", "The service has a fault of its own."),
    "slow_down": ("rate_limited", "The service asks to come back later."),
}


class Pending(Exception):
    """Nobody has entered the code yet. `slower`: the service wants to be asked less often."""

    def __init__(self, slower):
        super().__init__()
        self.slower = slower


def failure_of(error):
    kind, message = _KINDS.get(str(error), ("unknown", "The service refused the sign-in."))
    return Failure(kind, message)


def token(grant, client_secret=""):
    """Ask the token endpoint; what it answered, or what is wrong."""
    answer, _ = post(settings()["token_url"], grant, client_secret)
    if not isinstance(answer.get("access_token"), str):
        raise Failure("service_unavailable", "The service answered without a token.")
    return answer


def post(url, fields, client_secret=""):
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    fields = {name: value for name, value in fields.items() if value}
    _add_client(fields, headers, client_secret)
    status, told, body = call("POST", url, body=urllib.parse.urlencode(fields).encode(), headers=headers)
    if status == 429:
        raise Failure("rate_limited", "The service asks to come back later.", retry_minutes(told))
    if status >= 500:
        raise Failure("service_unavailable", f"The service answered with {status}.")
    answer = _read(body)
    if "error" in answer:
        if answer["error"] in ("authorization_pending", "slow_down") and "device_code" in fields:
            raise Pending(answer["error"] == "slow_down")
        raise failure_of(answer["error"])
    if status != 200:
        raise Failure("service_unavailable", f"The service answered with {status}.")
    return answer, told


def _add_client(fields, headers, client_secret):
    client = settings()["client_id"]
    if client_secret and settings().get("token_auth", "basic") == "basic":
        both = ":".join(urllib.parse.quote_plus(part) for part in (client, client_secret))
        headers["Authorization"] = "Basic " + base64.b64encode(both.encode()).decode()
        return
    fields["client_id"] = client
    if client_secret:
        fields["client_secret"] = client_secret


def _read(body):
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Failure("service_unavailable", "The service answered with something that cannot be read.")
    return answer


def keep(answer, asked_at, held):
    """Hand the tokens back, and say until when the access token holds by our own clock: the service says how long, not
    until when, so it does not matter what its clock shows."""
    until = expires_at(answer.get("expires_in"), asked_at)
    return_secrets(
        access_token=answer["access_token"],
        refresh_token=answer.get("refresh_token") or held.get("refresh_token"),
        expires_at=until,
        client_secret=held.get("client_secret"),
    )
    return until


def expires_at(life, asked_at):
    try:
        seconds = int(life)
    except (TypeError, ValueError):
        return None
    return int(asked_at) + max(min(seconds, LONGEST_LIFE) - EARLY_SECONDS, 0)


def skew_warning(headers):
    """A sentence when the service's clock and ours are far apart: signatures and codes may then fail."""
    try:
        apart = abs(parsedate_to_datetime(headers.get("Date", "")).timestamp() - time.time())
    except (TypeError, ValueError):
        return []
    return [f"The service's clock and ours are {int(apart // 60)} minutes apart."] if apart > SKEW_SECONDS else []
