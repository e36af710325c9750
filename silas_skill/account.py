"""Read a connection's settings and secrets, speak the protocol of its scripts, and call its service."""

import json
import os
import select
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime

LONGEST_ANSWER = 1_000_000
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_input = bytearray()


class Failure(Exception):
    """One of the kinds of failure that people can do something about."""

    def __init__(self, kind, message, retry_minutes=None):
        super().__init__(message)
        self.fields = {"failure_type": kind, "service": settings().get("service", ""), "message": message}
        if retry_minutes:
            self.fields["retry_minutes"] = retry_minutes


def settings():
    return json.loads(os.environ.get("SILAS_SETTINGS") or "{}")


def secrets():
    """The next object of secrets: of a set-up its next line, else all there is. It can be read once."""
    line, descriptor = bytearray(), int(os.environ["SILAS_SECRET_FD"])
    while (piece := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += piece
    return json.loads(bytes(line) or b"{}")


def return_secrets(**values):
    """New credentials, to the platform alone. Once, and before the last word."""
    left = json.dumps({name: str(value) for name, value in values.items() if value}).encode()
    while left:
        left = left[os.write(int(os.environ["SILAS_SECRET_OUT_FD"]), left) :]


def answer(**value):
    print(json.dumps(value))
    sys.exit(0)


def answer_once(work):
    """Run a script that answers once; a failure is an answer too."""
    try:
        answer(**work())
    except Failure as failure:
        answer(success=False, healthy=False, error=failure.fields["message"], failure=failure.fields)


def send_event(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)


def show_step(step_id, kind, *, wait, **fields):
    """Put a step before the person; with `wait`, until they have answered it."""
    send_event("setup_step", step_id=step_id, step={"type": kind, **fields})
    if not wait:
        return None
    send_event("await_input", step_id=step_id)
    while True:
        event = read_event()
        if event.get("type") == "step_result" and event.get("step_id") == step_id:
            return event.get("payload") or {}


def read_event(seconds=None):
    """The next event; None when nothing came in this time. A cancel, or the end, ends the script."""
    until = None if seconds is None else time.monotonic() + seconds
    while b"\n" not in _input:
        left = None if until is None else max(until - time.monotonic(), 0)
        if not select.select([0], [], [], left)[0]:
            return None
        piece = os.read(0, 65_536)
        if not piece:
            sys.exit(1)
        _input.extend(piece)
    line, _, rest = bytes(_input).partition(b"\n")
    _input[:] = rest
    event = json.loads(line)
    if event.get("type") == "cancel":
        sys.exit(0)
    return event


def run_setup(talk):
    """Hold the conversation; a failure is its last word."""
    try:
        send_event("completion", connection_payload=talk(read_event()))
    except Failure as failure:
        send_event("failure", failure=failure.fields)


def call(method, url, *, body=None, headers=None):
    """(status, headers, bytes). No redirect is followed: it could lead a secret elsewhere."""
    request = urllib.request.Request(_safe(url), data=body, method=method, headers=headers or {})  # noqa: S310 - looked at
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=trust()))
    try:
        with opener.open(request, timeout=15) as response:
            return response.status, response.headers, response.read(LONGEST_ANSWER)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read(LONGEST_ANSWER)
    except (OSError, ValueError) as error:
        raise Failure("service_unavailable", f"The service does not answer: {type(error).__name__}.") from error


def trust():
    """The machine's authorities, and the house's own if the settings name one."""
    context = ssl.create_default_context()
    if settings().get("ca"):
        context.load_verify_locations(cadata=settings()["ca"])
    return context


def check_status(status, headers):
    """Raise what people can do something about."""
    if status in (401, 403):
        raise Failure("token_revoked", "The service does not accept these credentials any more.")
    if status == 429:
        raise Failure("rate_limited", "The service asks to come back later.", retry_minutes(headers))
    if status >= 300:
        raise Failure("service_unavailable", f"The service answered with {status}.")


def retry_minutes(headers):
    said = str(headers.get("Retry-After", ""))
    return min(max(1, -(-int(said) // 60)), 1440) if said.isdigit() else 15


def format_moment(seconds):
    """Seconds since 1970 as the protocol writes a moment."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat() if seconds else None


def _safe(url):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise Failure("unknown", "The address in the settings is not an https address.")
    return url


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
