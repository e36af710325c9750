"""Broker, channel layer and cache each speak to the Redis that is theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from silas_platform.settings.broker import redis_servers, url
from silas_platform.up.embedded import RedisServer, start_redis
from silas_platform.up.environment import ROOT
from tests import nursery

USES_ALL = """
import django; django.setup()
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core.cache import cache
from apps.bus.workers import Worker
from apps.bus.wakeup import wake
from tests import nursery
cache.set("kept", "here", 60)
async_to_sync(get_channel_layer().group_send)("news", {"type": "news"})
wake(Worker.WORK)
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[dict[str, RedisServer]]:
    names = ("REDIS_URL", "SILAS_CHANNELS_URL", "SILAS_BROKER_URL")
    started = {name: start_redis(tmp_path / name, persist=False) for name in names}
    yield started
    for server in started.values():
        server.stop()


def commands(server: RedisServer) -> set[str]:
    with Redis.from_url(server.url) as client:
        return {name.removeprefix("cmdstat_") for name in client.info("commandstats")}


def test_each_use_reaches_its_own_server(database: None, servers: dict[str, RedisServer]) -> None:
    env = {**os.environ, **{name: server.url for name, server in servers.items()}}
    nursery.run([sys.executable, "-c", USES_ALL], cwd=ROOT, env=env, check=True)
    assert "set" in commands(servers["REDIS_URL"])
    assert "publish" in commands(servers["SILAS_CHANNELS_URL"])
    assert "lpush" in commands(servers["SILAS_BROKER_URL"])
    assert not {"publish", "lpush"} & commands(servers["REDIS_URL"])
    assert not {"lpush", "set"} & commands(servers["SILAS_CHANNELS_URL"])
    assert not {"publish", "set"} & commands(servers["SILAS_BROKER_URL"])


def test_one_server_serves_all_where_no_other_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://one:6379/0")
    assert url() == "redis://one:6379/0"
    assert redis_servers() == ("redis://one:6379/0",)
    monkeypatch.setenv("SILAS_BROKER_URL", "unix:///run/broker.sock")
    assert url() == "redis+socket:///run/broker.sock"
    assert redis_servers() == ("redis://one:6379/0", "unix:///run/broker.sock")
