"""Where does the web process listen, and does it answer yet?"""

import http.client
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from silas_platform.up.environment import StartRefused

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  (compared, not bound)


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def free_address(env: Mapping[str, str]) -> Address:
    """HOST and PORT of `env`; raises `StartRefused` when nothing could listen there now."""
    host, port = env.get("HOST") or "127.0.0.1", env.get("PORT") or "8420"
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise StartRefused(f"PORT must be a number from 1 to 65535, not {port!r}")
    try:
        family, kind, _, _, where = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise StartRefused(f"cannot listen on {host} port {port}: {error.strerror or error}") from None
    return Address(host, int(port))


def is_ready(address: Address, *, allowed_hosts: Sequence[str]) -> bool:
    """Whether /health/ready says 200. An address open to all is asked over loopback, under a name that is allowed."""
    open_to_all = address.host in _EVERYWHERE
    names = [name.lstrip(".") for name in allowed_hosts if name != "*"]
    connection = http.client.HTTPConnection("localhost" if open_to_all else address.host, address.port, timeout=2)
    try:
        connection.request("GET", "/health/ready", headers={"Host": names[0]} if open_to_all and names else {})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
