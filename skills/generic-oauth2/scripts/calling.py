"""One call of the service with the token that is held."""

import json
import time

import tokens

from silas_skill.account import call, check_status, format_moment, secrets, settings


def look():
    """(what it told, milliseconds, warnings, until when the token holds)."""
    held = secrets()
    until = format_moment(held.get("expires_at"))
    if not settings().get("userinfo_url"):
        return {}, 0, [], until
    started = time.monotonic()
    headers = {"Authorization": f"Bearer {held.get('access_token', '')}", "Accept": "application/json"}
    status, told, body = call("GET", settings()["userinfo_url"], headers=headers)
    check_status(status, told)
    try:
        found = json.loads(body)
    except ValueError:
        found = {}
    spent = int(1000 * (time.monotonic() - started))
    return found if isinstance(found, dict) else {}, spent, tokens.skew_warning(told), until
