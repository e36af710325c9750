"""Address of the web process, and verification that our own process answers there.

A port may be free on one address and taken on another (127.0.0.1, ::1, all addresses), and a person who opens the
printed address, or `localhost`, must not reach another program. So the start is refused when anything answers at this
port of this machine, and again when what answers after the start does not belong to this run.
"""

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from silas_platform.up.environment import StartRefused, is_loopback

# Environment variable with the id of a run, which /health/ready reports.
RUN = "SILAS_RUN"
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  (compared, not bound)
_LOOPBACK = ("127.0.0.1", "::1")
_CONNECT_SECONDS, _ANSWER_SECONDS = 0.5, 2.0


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def near(self) -> tuple[str, ...]:
        """Hosts under which a person on this machine may open it."""
        here = is_loopback(self.host) or self.host in _EVERYWHERE
        return _LOOPBACK if here else (self.host, *_LOOPBACK)


def free_address(env: Mapping[str, str]) -> Address:
    """HOST and PORT of `env`; raises `StartRefused` when nothing could listen there now, or something answers there."""
    host, port = env.get("HOST") or "127.0.0.1", env.get("PORT") or "8420"
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise StartRefused(f"PORT must be a number from 1 to 65535, not {port!r}")
    address = Address(host, int(port))
    for near in address.near:
        with suppress(OSError), socket.create_connection((near, address.port), timeout=_CONNECT_SECONDS):
            raise _taken(near, address.port)
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise StartRefused(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    return address


def is_ready(address: Address, *, run: str, allowed_hosts: Sequence[str]) -> bool:
    """Whether /health/ready says 200 for this run. Raises `StartRefused` when another program answers at the port."""
    answers = {near: _answer(near, address.port, allowed_hosts) for near in address.near}
    for near, answer in answers.items():
        if answer is not None and answer[1] != run:
            raise _taken(near, address.port)
    statuses = [answer[0] for answer in answers.values() if answer is not None]
    return bool(statuses) and all(status == 200 for status in statuses)


def _answer(host: str, port: int, allowed_hosts: Sequence[str]) -> tuple[int, str] | None:
    """Status and run id of the answer, or None when nothing answers yet. Requested under one of the allowed hosts."""
    names = [name.lstrip(".") for name in allowed_hosts if name != "*"]
    shown = f"[{host}]" if ":" in host else host
    named = shown if not names or shown in names else names[0]
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/health/ready", headers={"Host": named})
        answer = connection.getresponse()
        body = answer.read(10_000)
    except (http.client.RemoteDisconnected, OSError):
        return None
    except http.client.HTTPException:
        return 0, ""
    finally:
        connection.close()
    try:
        status = json.loads(body)
    except ValueError:
        return answer.status, ""
    return answer.status, str(status.get("run", "")) if isinstance(status, dict) else ""


def _taken(host: str, port: int) -> StartRefused:
    return StartRefused(f"another program answers on {host} port {port}: stop it, or choose another PORT")
