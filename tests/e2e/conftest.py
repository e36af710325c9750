"""A real web process, a real worker, a real browser: what the stories across rooms stand on.

Everything here runs on one event loop for the whole session, because the browser does; a test reads and writes rows
with `in_scope` / `in_thread`. `web` and `worker` use the tests' own PostgreSQL and Redis. A page that logs an error
fails its test unless the test expects it and clears `open_page.errors`.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import psutil
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from silas_platform import demo as demo_content
from silas_platform.up import processes
from silas_platform.up.environment import for_program
from tests import nursery
from tests.e2e.peer import Peer
from tests.ports import free_port
from tests.programs import PROGRAMS, do_without

ROOT = Path(__file__).resolve().parents[2]
# Each window of Chromium loads two pages of its own behind the field for addresses, which take more processor time than
# ours do. Only the last list of features counts: what Playwright turns off stands here again.
TURNED_OFF = [
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "TcpPortRandomizationWin",
    "ThirdPartyStoragePartitioning",
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    f"--disable-features={','.join(TURNED_OFF)}",
]
START_SECONDS = 60
# Where a test may run an outside service that scripts can reach.
OUTSIDE_PORT = free_port()
# Where tests run the servers of messengers, and the certificate of a mail server.
TELEGRAM_PORT, SLACK_PORT = free_port(), free_port()
MAIL_HOME = Path(tempfile.gettempdir()) / f"silas-mail-{os.getpid()}"
CHANNELS = {
    "SILAS_CHANNELS_CA": str(MAIL_HOME / "cert.pem"),
    "SILAS_TELEGRAM_API": f"http://127.0.0.1:{TELEGRAM_PORT}",
    "SILAS_SLACK_API": f"http://127.0.0.1:{SLACK_PORT}/api",
    "SILAS_CHANNEL_POLL_SECONDS": "1",
}
# A machine that runs more than these tests is slow, not wrong.
expect.set_options(timeout=30_000)


# As in tools/test: the shell without windows comes first, because it costs a quarter less.
SHELL, *WHOLE = "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"


def chromium() -> str | None:
    return os.environ.get("SILAS_CHROMIUM") or _installed(SHELL, *WHOLE)


def whole_chromium() -> str:
    """The test is skipped where there is none."""
    given = os.environ.get("SILAS_CHROMIUM")
    whole = given if given and SHELL not in given else _installed(*WHOLE)
    return whole or do_without("needs Debian's chromium", PROGRAMS)


def _installed(*names: str) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = {item for item in items if Path(__file__).parent in item.path.parents}
    for item in here:
        item.add_marker(pytest.mark.browser)
        if inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    # A running worker takes whatever is due, also what a test carries out itself: its tests come after all others.
    items.sort(key=lambda item: item in here and "worker" in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="package")
def web(migrated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web process of its own; its address without a closing slash."""
    port = free_port()
    bind = ["--bind", "127.0.0.1", "--port", str(port), "--application-close-timeout", "5"]
    log = tmp_path_factory.mktemp("web") / "log"
    with _running(
        [sys.executable, "-m", "daphne", *bind, "tests.e2e.web:application"], log, {**os.environ, **CHANNELS}
    ) as process:
        url = f"http://127.0.0.1:{port}"
        _await(lambda: _answers(f"{url}/health/ready"), process, log)
        yield url


@pytest.fixture(scope="package")
def worker(migrated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The two Celery workers: the trusted one, and one for everything else, which is told no key that signs and speaks
    in a database role of its own."""
    env = {**for_program(os.environ, "worker"), "SILAS_EGRESS_PRIVATE": f"127.0.0.1:{OUTSIDE_PORT}"}
    logs = tmp_path_factory.mktemp("worker")
    celery = [sys.executable, "-m", "celery", "-A", "silas_platform", "worker", "--loglevel=INFO"]
    alone = ["--without-gossip", "--without-mingle"]
    trusted_env = {**for_program(os.environ, "trusted"), **CHANNELS, "SILAS_PASSKEY_ORIGIN": "https://console.example"}
    own = ["-Q", "trusted", "-n", "trusted@%h", "--pool", "threads", "--concurrency", "2"]
    with (
        _running([*celery, *alone, "--concurrency", "1"], logs / "worker", env) as process,
        _running([*celery, *alone, *own], logs / "trusted", trusted_env) as trusted,
    ):
        _await(lambda: " ready." in (logs / "worker").read_text(), process, logs / "worker")
        _await(lambda: " ready." in (logs / "trusted").read_text(), trusted, logs / "trusted")
        yield


@pytest.fixture(scope="session")
def seeded(migrated: None, django_db_blocker: Any) -> dict[str, demo_content.Login]:
    """The demo tenants and their staff, by `tenant role`."""
    with django_db_blocker.unblock():
        logins = demo_content.seed(progress=lambda _: None)
    return {f"{login.tenant} {login.role}": login for login in logins}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launched(chromium()) as browser:
        yield browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def whole_browser() -> AsyncIterator[Browser]:
    """For a file whose tests need what the shell lacks: it names this one its `browser`, and says why."""
    async with launched(whole_chromium()) as browser:
        yield browser


@asynccontextmanager
async def launched(program: str | None) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        await browser.close()


@dataclass
class OpenPage:
    """Opens pages, each in a browser profile of its own; gathers what they complain about."""

    browser: Browser
    contexts: list[BrowserContext] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def __call__(self, address: str, *, peer: Peer | None = None, **options: Any) -> Page:
        """`peer` stands at the other end of the widget's socket; options are those of playwright's `new_context`. No
        service worker stands between a page and the test, unless it is allowed."""
        context = await self.browser.new_context(**{"service_workers": "block", **options})
        self.contexts.append(context)
        if peer is not None:
            await context.route_web_socket("**/ws/widget/**", peer.connected)
        page = await context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        await page.goto(address)
        return page


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser) -> AsyncIterator[OpenPage]:
    opener = OpenPage(browser)
    yield opener
    for context in opener.contexts:
        await context.close()
    assert opener.errors == []


@pytest.fixture
def peer() -> Peer:
    return Peer()


@dataclass
class Site:
    """A customer's web site: another origin, and another site to the browser, than the platform."""

    origin: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/"
            self.send_response(200 if found else 204)
            for name, value in {"Content-Type": "text/html; charset=utf-8", **served.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if found:
                self.wfile.write(served.body.encode())

        def log_message(self, *_: Any) -> None:
            """Quiet: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Site(f"http://localhost:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def _running(argv: list[str], log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = _spawn(argv, output, env)
        try:
            yield process
        finally:
            processes.end([psutil.Process(process.pid)], grace=15)
            processes.end_group(process)


def _spawn(argv: list[str], output: IO[bytes], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return nursery.spawn(argv, env={**env, "PYTHONUNBUFFERED": "1"}, output=output)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def _await(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(f"{process.args!r} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.1)
