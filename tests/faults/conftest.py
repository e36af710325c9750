"""One house for all tests of faults: they break it one after the other, and it must stand again each time."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, direct, serving_in_thread
from tests.faults.house import House, Web, await_that, open_house

FAKE = "openai-chat:gpt-4o-mini"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def provider() -> Iterator[FakeOpenAI]:
    with serving_in_thread([direct("Hello.")]) as fake:
        yield fake


@pytest.fixture(scope="session")
def house(provider: FakeOpenAI) -> Iterator[House]:
    var = Path(tempfile.mkdtemp(prefix="silas-faults-"))
    # A test writes quicker than any visitor.
    opened = open_house(var, provider.base_url, SILAS_MODEL_RUNS_A_MINUTE="600", SILAS_MESSAGES_A_MINUTE="600")
    try:
        opened.furnish()
        yield opened
    finally:
        opened.stop()
        shutil.rmtree(var, ignore_errors=True)


@pytest.fixture(scope="session")
def web(house: House) -> Web:
    started = house.start_web()
    await_that(started.is_ready, "the web process is ready")
    return started


@pytest.fixture(scope="session")
def worker(house: House) -> subprocess.Popen[bytes]:
    """A worker, and beat beside it."""
    house.start_beat()
    return house.start_worker()


@pytest.fixture(scope="module")
def model(house: House, provider: FakeOpenAI) -> Iterator[Callable[[Replies], FakeOpenAI]]:
    """Call it with what the outside model shall answer from now on; then that model is asked, and not ours."""

    def speaks(replies: Replies) -> FakeOpenAI:
        provider.replies = replies
        provider.requests.clear()
        provider.most_at_once = 0
        house.use_models(FAKE)
        return provider

    yield speaks
    house.use_models("builtin:grounded")
