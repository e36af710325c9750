"""A whole run without a network: a question, an approval and its work reach for nothing that was not configured.

Web, worker and beat live in network namespaces without any interface, so whatever is not a unix socket fails there, and
the kernel counts the attempt, whatever library makes it: a name that is looked up, a packet, a connection. (It does not
count a literal IPv6 address where there is no address to send from; nobody is reached by it.)
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tests.faults.house import NO_NETWORK, House, Web, await_that
from tests.faults.staff import Staff
from tests.faults.visitor import Visitor

HELEN = "I am Helen Whitfield, born on 19 August 1955."
MOVE = "Please change the address on my policy HM-18800 to 12 Market Place, Ripon HG4 1BN"
# Attempts to reach another machine, or this one by its network address: no way there, or a packet that left.
COUNTERS = {
    "Ip:OutNoRoutes",
    "Ip:OutRequests",
    "Tcp:ActiveOpens",
    "Udp:OutDatagrams",
    "Ip6OutNoRoutes",
    "Ip6OutRequests",
}
REACHES = """
import socket, sys, urllib.request
from pathlib import Path
def tcp(family, address):
    with socket.socket(family) as line:
        line.connect(address)
def name():
    socket.getaddrinfo("telemetry.example.com", 443)
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", ("192.0.2.1", 53))
ways = {
    "tcp": lambda: tcp(socket.AF_INET, ("192.0.2.1", 443)),
    "name": name,
    "loopback": lambda: tcp(socket.AF_INET, ("127.0.0.1", 9)),
    "udp": udp,
    "url": lambda: urllib.request.urlopen("http://192.0.2.1/"),
}
try:
    ways[sys.argv[1]]()
except OSError:
    pass
print(Path("/proc/self/net/snmp").read_text(), Path("/proc/self/net/snmp6").read_text())
"""


def attempts(snmp: str) -> dict[str, int]:
    """The counters of a namespace that are not zero, out of the kernel's two tables."""
    found: dict[str, int] = {}
    lines = [line.split() for line in snmp.splitlines() if line.strip()]
    for names, values in pairwise(lines):
        if names[0].endswith(":") and names[0] == values[0] and not names[1].lstrip("-").isdigit():
            found |= {f"{names[0]}{name}": int(value) for name, value in zip(names[1:], values[1:], strict=True)}
    found |= {line[0]: int(line[1]) for line in lines if len(line) == 2}
    return {name: count for name, count in found.items() if name in COUNTERS and count}


def attempts_of(process: subprocess.Popen[bytes]) -> dict[str, int]:
    net = Path(f"/proc/{process.pid}/net")
    return attempts((net / "snmp").read_text() + (net / "snmp6").read_text())


@dataclass
class Run:
    answer: str
    statuses: list[str]
    attempts: dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def run(house: House, worker: subprocess.Popen[bytes]) -> Run:
    before = {name: attempts_of(process) for name, process in house.without_network.items() if name != "web"}
    web = house.start_web(network=False)
    await_that(web.is_ready, "the web process without a network is ready")
    try:
        answer, statuses = asyncio.run(_story(house, web))
        after = {name: attempts_of(process) for name, process in house.without_network.items()}
        # Other tests of this house give it a provider to ask, and a worker's planner may have asked there.
        reached = {name: dict(Counter(counts) - Counter(before.get(name, {}))) for name, counts in after.items()}
        return Run(answer, statuses, reached)
    finally:
        house.kill(web.process)


async def _story(house: House, web: Web) -> tuple[str, list[str]]:
    async with Visitor(lambda: web) as visitor:
        answer = await visitor.ask("Does my home policy cover a burst pipe?")
        await visitor.ask(HELEN)
        await visitor.say(MOVE)
        await visitor.until(lambda frame: frame["type"] == "status")
        (card,) = house.rows("SELECT id FROM approvals_card WHERE session_id = %s", visitor.session_id)
        staff = await asyncio.to_thread(Staff, lambda: web, "approver")
        await asyncio.to_thread(staff.approve, card["id"])
        await visitor.until(lambda frame: frame["type"] == "status" and frame["status"] == "done")
        return answer["text"], [frame["status"] for frame in visitor.heard if frame["type"] == "status"]


@pytest.mark.parametrize("way", ["tcp", "name", "loopback", "udp", "url"])
def test_attempt_to_reach_something_is_counted(way: str) -> None:
    argv = [*NO_NETWORK, sys.executable, "-I", "-c", REACHES, way]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert attempts(told)


def test_question_and_approved_work_need_no_network(run: Run) -> None:
    assert "50,000" in run.answer
    assert run.statuses[-1] == "done"


def test_no_process_reaches_for_anything(run: Run) -> None:
    assert run.attempts == {"web": {}, "trusted": {}, "worker": {}, "beat": {}}
