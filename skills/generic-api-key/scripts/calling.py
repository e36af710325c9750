"""One call of the service with the key."""

import base64
import time
import urllib.parse

from silas_skill.account import call, check_status, settings


def look(key):
    """Milliseconds that the call took."""
    known, started = settings(), time.monotonic()
    url = urllib.parse.urljoin(known["base_url"].rstrip("/") + "/", known.get("health_path", "/").lstrip("/"))
    prefix = known.get("prefix", "Bearer ")
    if prefix.strip().lower() == "basic" and ":" in key:
        prefix, key = "Basic ", base64.b64encode(key.encode()).decode()
    headers = {known.get("header", "Authorization"): prefix + key}
    name, _, value = known.get("more_header", "").partition(":")
    if name.strip():
        headers[name.strip()] = value.strip()
    status, told, _ = call("GET", url, headers=headers)
    check_status(status, told)
    return int(1000 * (time.monotonic() - started))
