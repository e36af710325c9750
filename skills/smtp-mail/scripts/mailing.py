"""A line to the mail server, through the one way out that a run has."""

import os
import smtplib
import socket
import time
import urllib.parse

from silas_skill.account import LOOPBACK, Failure, settings, trust

SECONDS = 20


class Line(smtplib.SMTP):
    """Called by CONNECT: the sandbox has no other network than the harness' proxy."""

    def _get_socket(self, host, port, timeout):
        line = tunnel(host, port, timeout)
        return trust().wrap_socket(line, server_hostname=host) if _security() == "tls" else line


def tunnel(host, port, timeout):
    proxy = urllib.parse.urlsplit(os.environ.get("HTTPS_PROXY", ""))
    if not proxy.hostname:
        raise Failure("unknown", "The settings name no server that may be reached.")
    line = socket.create_connection((proxy.hostname, proxy.port), timeout)
    line.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = line.recv(1)
        if not piece:
            raise Failure("service_unavailable", "The mail server does not answer.")
        head += piece
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise Failure("service_unavailable", "The mail server cannot be reached from here.")
    return line


def signed_in(password):
    """A line that is encrypted and signed in."""
    host, _, port = settings()["server"].rpartition(":")
    try:
        line = Line(host, int(port), timeout=SECONDS)
        _encrypt(line, host)
        line.login(settings().get("username") or settings()["from_address"], password)
    except smtplib.SMTPAuthenticationError:
        raise Failure("token_revoked", "The mail server does not accept the name and password.") from None
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise Failure("service_unavailable", f"The mail server does not answer: {type(error).__name__}.") from error
    return line


def _encrypt(line, host):
    if _security() == "starttls":
        line.starttls(context=trust())
    elif _security() == "none" and host not in LOOPBACK:
        raise Failure("unknown", "A password goes over an encrypted line only.")


def _security():
    return settings().get("security", "starttls")


def look(password):
    """Milliseconds to sign in and to have the server do nothing."""
    started = time.monotonic()
    with signed_in(password) as line:
        code, _ = line.noop()
    if code != 250:
        raise Failure("service_unavailable", f"The mail server answered with {code}.")
    return int(1000 * (time.monotonic() - started))
