"""Redis behind Sentinel: its master dies, another server becomes master, and every use of Redis follows."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from silas_platform.up.environment import ROOT
from tests import nursery
from tests.factories.sentinel import Redises, is_installed, start_redises
from tests.programs import SERVERS, do_without

FOLLOW_SECONDS = 20.0
# Uses Redis in each of its ways, once for each line that it reads, and answers with what came of it.
USES_ALL = """
import asyncio, sys
import django; django.setup()
from channels.layers import get_channel_layer
from django.core.cache import cache
from apps.bus.workers import Worker
from apps.bus.wakeup import wake
from kernel.ratelimit.fixed_window import Limit, aconsume
from silas_platform.celery import app

async def main():
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add("news", channel)
    while (word := await asyncio.to_thread(sys.stdin.readline)).strip():
        try:
            await asyncio.to_thread(cache.set, "kept", word, 60)
            assert await asyncio.to_thread(cache.get, "kept") == word
            await aconsume([Limit("a", 100, 60), Limit("b", 100, 60)])
            await layer.group_send("news", {"type": word})
            async with asyncio.timeout(2):
                while (await layer.receive(channel))["type"] != word:
                    pass
            await asyncio.to_thread(wake, Worker.WORK)
            with app.connection_for_read() as line:
                assert line.default_channel.client.llen("work")
        except Exception as error:
            print("no", type(error).__name__, str(error)[:200].replace(chr(10), " "), flush=True)
        else:
            print("yes", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def redises() -> Iterator[Redises]:
    if not is_installed():
        do_without("needs Debian's redis-server and redis-sentinel", SERVERS)
    started = start_redises(Path(tempfile.mkdtemp(prefix="silas-sentinel-")))
    yield started
    started.stop()


@pytest.fixture
def user(database: None, redises: Redises) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "REDIS_URL": redises.url}
    argv = [sys.executable, "-c", USES_ALL]
    with nursery.start(argv, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def use(user: subprocess.Popen[str], word: str) -> str:
    assert user.stdin
    assert user.stdout
    user.stdin.write(f"{word}\n")
    user.stdin.flush()
    return user.stdout.readline().strip()


def test_every_use_follows_the_master(user: subprocess.Popen[str], redises: Redises) -> None:
    assert use(user, "before") == "yes"
    killed = redises.master()
    assert redises.fail_over() != killed
    give_up = time.monotonic() + FOLLOW_SECONDS
    answers: list[str] = []
    while (answer := use(user, f"after-{len(answers)}")) != "yes":
        answers.append(answer)
        assert time.monotonic() < give_up, answers
        time.sleep(0.2)
    assert use(user, "again") == "yes"
