"""Named places and no others: a script that may reach one host tries everything else, on every backend."""

from __future__ import annotations

import http.server
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernel.errors import SilasError
from sandbox import Choice, Kind, SandboxResult, SandboxSpec, SandboxUnavailable, Session, configure
from sandbox.backends import Docker
from sandbox.egress import choose_address, parse_place, parse_places
from sandbox.runner import run_on

FETCH = """
import urllib.request
print(urllib.request.urlopen("http://{place}/page", timeout=20).read().decode())
"""
# Says the first line of what the proxy answers to this request.
ASK = """
import socket
line = socket.create_connection(("127.0.0.1", 3128), 20)
line.sendall({request!r})
print(line.recv(4096).split(b"\\r\\n")[0].decode())
"""
METADATA = [
    "127.0.0.1:1",
    "169.254.169.254:80",
    "[::ffff:10.0.0.1]:443",
    "[::1]:80",
    "[64:ff9b::a9fe:a9fe]:80",
    "10.1.2.3:443",
]


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.headers["Host"].encode() + b" " + self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    """A service inside of the house, which the operator allows."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def allowed(place: str) -> Iterator[str]:
    configure(Choice(egress_private=(place,)))
    yield place
    configure(Choice())


@pytest.fixture
def ask(python: Callable[..., SandboxResult]) -> Callable[..., SandboxResult]:
    return lambda request, *places: python(ASK.format(request=request), egress=tuple(places))


def connect(place: str) -> bytes:
    return f"CONNECT {place} HTTP/1.1\r\n\r\n".encode()


def test_listed_place_is_reached_by_a_plain_request(python: Any, allowed: str) -> None:
    result = python(FETCH.format(place=allowed), egress=(allowed,))
    assert result.stdout == f"{allowed} /page\n"
    assert result.stderr == ""


def test_listed_place_is_reached_through_a_tunnel(python: Any, allowed: str) -> None:
    source = (
        ASK.format(request=connect(allowed))
        + "line.sendall(b'GET /t HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n')\nprint(line.recv(99))"
    )
    assert "200 Connection established" in (said := python(source, egress=(allowed,)).stdout)
    assert "200 OK" in said


def test_result_counts_what_went_out_and_came_back(python: Any, allowed: str) -> None:
    (reached,) = python(FETCH.format(place=allowed), egress=(allowed,)).egress
    assert reached.place == allowed
    assert reached.connections == 1
    assert reached.bytes_out > 50
    assert reached.bytes_in > 50


def test_direct_socket_to_the_listed_place_fails(python: Any, allowed: str) -> None:
    host, port = allowed.split(":")
    result = python(f"import socket; socket.create_connection(({host!r}, {port}), 2)", egress=(allowed,))
    assert "refused" in result.stderr


def test_run_without_places_has_no_proxy(python: Any) -> None:
    result = python(
        "import os, socket\nprint('HTTP_PROXY' in os.environ)\nsocket.create_connection(('127.0.0.1', 3128), 2)"
    )
    assert result.stdout == "False\n"
    assert result.exit_code == 1


def test_other_port_of_a_listed_host_is_refused(ask: Any, allowed: str) -> None:
    result = ask(connect("127.0.0.1:22"), allowed)
    assert result.stdout == "HTTP/1.1 403 egress_refused\n"
    assert result.egress == ()
    assert result.egress_refused == 1


def test_other_host_is_refused_by_a_plain_request_too(ask: Any, allowed: str) -> None:
    request = b"GET http://example.org/ HTTP/1.1\r\nHost: " + allowed.encode() + b"\r\n\r\n"
    assert "403" in ask(request, allowed).stdout


@pytest.mark.parametrize("inside", METADATA)
def test_address_inside_the_house_is_refused_though_it_is_listed(inside: str) -> None:
    """Without a word of the operator. One backend is enough: the harness decides."""
    result = run_on(
        _first(), SandboxSpec(["python3", "-I", "-S", "-c", ASK.format(request=connect(inside))], egress=(inside,))
    )
    assert "403 egress_refused" in result.stdout


def test_name_that_comes_to_mean_an_address_inside_is_refused(monkeypatch: pytest.MonkeyPatch, allowed: str) -> None:
    """Rebinding: it is looked up once a connection, and what was looked at is what is called."""
    port = int(allowed.rpartition(":")[2])
    answers = iter([["93.184.216.34", "127.0.0.1"], ["127.0.0.1"]])
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (found, port)) for found in next(answers)]
    )
    source = ASK.format(request=connect(f"shop.example:{port}"))
    result = run_on(
        _first(), SandboxSpec(["python3", "-I", "-S", "-c", source + source], egress=(f"shop.example:{port}",))
    )
    assert result.stdout == "HTTP/1.1 403 egress_refused\n" * 2


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET https://example.org/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://a@127.0.0.1:80/ HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT 127.0.0.1:99999 HTTP/1.1\r\n\r\n", 400),
        (b"GET http://127.0.0.1:80/ HTTP/1.1\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431),
    ],
)
def test_malformed_request_is_refused(request_: bytes, status: int) -> None:
    source = ASK.format(request=request_)
    result = run_on(_first(), SandboxSpec(["python3", "-I", "-S", "-c", source], egress=("example.org:443",)))
    assert result.stdout.startswith(f"HTTP/1.1 {status} ")


def test_more_than_may_be_sent_and_fetched_stops_the_run(python: Any, allowed: str) -> None:
    result = python(FETCH.format(place=allowed) * 20, egress=(allowed,), egress_bytes=1000)
    assert result.reason == "egress_limit"
    assert sum(each.bytes_in + each.bytes_out for each in result.egress) <= 1000


def test_more_connections_than_allowed_are_refused(python: Any, allowed: str) -> None:
    result = python(FETCH.format(place=allowed) * 4, egress=(allowed,), egress_connections=3)
    assert result.stdout.count("/page") == 3
    assert "429" in result.stderr


def test_grandchild_that_outlives_the_command_reaches_nothing(python: Any) -> None:
    """It holds a tunnel, and tries to use it when the command has ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        configure(Choice(egress_private=(place,)))
        heard: list[bytes] = []
        hearing = threading.Thread(target=lambda: heard.append(_hear(server)), daemon=True)
        hearing.start()
        source = (
            ASK.format(request=connect(place))
            + "import os, time\nif os.fork() == 0:\n"
            + "  os.setsid()\n  time.sleep(0.5)\n  line.sendall(b'late')\n  os._exit(0)\n"
        )
        result = python(source, egress=(place,))
        configure(Choice())
        hearing.join(60)
    assert result.exit_code == 0
    assert heard == [b""]


def test_run_that_may_reach_places_knows_whom_to_trust_and_no_key(python: Any, allowed: str) -> None:
    look = "import os; print(os.path.isdir('/etc/ssl/certs'), os.path.exists('/etc/ssl/private'))"
    known = os.path.isdir("/etc/ssl/certs")
    assert python(look, egress=(allowed,)).stdout == f"{known} False\n"


def test_own_network_has_no_other_interface(python: Any, allowed: str) -> None:
    result = python(
        "print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev').readlines()[2:]))", egress=(allowed,)
    )
    assert "lo" in result.stdout
    assert "eth" not in result.stdout


@pytest.mark.parametrize(
    "entry", ["example.org", "example.org:0", "*.example.org:443", "http://a:1", "a b:1", ":443", "a:443x", "[::1:443"]
)
def test_entry_that_is_no_place_is_refused(entry: str) -> None:
    with pytest.raises(SilasError, match="host:port"):
        SandboxSpec(["true"], egress=(entry,))


def test_entry_has_one_spelling() -> None:
    assert parse_places(["Example.ORG.:443", "[::1]:80"]) == {"example.org:443", "[::1]:80"}
    assert parse_place("[::1]:80") == ("::1", 80)


def test_name_without_an_address_is_not_called() -> None:
    assert choose_address("a:1", [], private=["a:1"]) == ""


@pytest.mark.parametrize("given", [{"egress": ("a.example:1",)}, {"secret": b"{}"}])
def test_container_refuses_what_it_cannot_do(given: dict[str, Any]) -> None:
    assert Kind.DOCKER
    with pytest.raises(SandboxUnavailable, match="container"):
        run_on(Docker("image:1"), SandboxSpec(["true"], **given))


def test_container_cannot_be_talked_with() -> None:
    with pytest.raises(SandboxUnavailable, match="talked with"):
        Session(Docker("image:1"), SandboxSpec(["true"]))


def _first() -> Any:
    from tests.sandbox.conftest import WORKING

    return WORKING[0]


def _hear(server: socket.socket) -> bytes:
    line, _ = server.accept()
    with line:
        return line.recv(100)
