"""Servers that are older than their fixes are named, and the embedded Redis may do no more than the platform needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from silas_platform.up.embedded import RedisServer, start_redis
from silas_platform.up.versions import server_faults, version_fault


@pytest.mark.parametrize(
    ("product", "version", "wanted"),
    [
        ("Redis", "6.2.14", "6.2.20"),
        ("Redis", "7.2.7", "7.2.11"),
        ("Redis", "7.0.15", "8.6.3"),
        ("Redis", "5.0.3", "8.6.3"),
        ("Redis", "8.6.2", "8.6.3"),
        ("Valkey", "9.1.0", "9.1.1"),
        ("Valkey", "8.1.4", "8.1.6"),
        ("PostgreSQL", "18.4", "18.6"),
        ("PostgreSQL", "16.2", "16.14"),
        ("PostgreSQL", "13.23", "18.6"),
    ],
)
def test_server_older_than_its_fixes_is_named(product: str, version: str, wanted: str) -> None:
    fault = version_fault(product, version)
    assert fault.startswith(f"{product} {version} ")
    assert f"use {wanted} or newer" in fault


@pytest.mark.parametrize(
    ("product", "version"), [("Redis", "8.6.3"), ("Valkey", "9.1.2"), ("Valkey", "10.0.0"), ("PostgreSQL", "19.0")]
)
def test_server_with_its_fixes_is_not_named(product: str, version: str) -> None:
    assert version_fault(product, version) == ""


def test_servers_of_these_tests_are_asked_for_their_versions(database: None) -> None:
    from django.conf import settings

    from silas_platform.settings import env

    faults = server_faults(database=env.text("DATABASE_URL"), redis_urls=[settings.REDIS_URL])
    assert [fault for fault in faults if "PostgreSQL" not in fault] == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    started = start_redis(tmp_path_factory.mktemp("redis"), persist=False)
    yield started
    started.stop()


@pytest.mark.parametrize(
    "command",
    [
        "CONFIG GET dir",
        "CONFIG SET dir /tmp",
        "MODULE LIST",
        "REPLICAOF 127.0.0.1 1",
        "SLAVEOF 127.0.0.1 1",
        "SHUTDOWN NOSAVE",
        "KEYS *",
        "FLUSHALL",
        "SAVE",
        "BGSAVE",
        "BGREWRITEAOF",
        "MIGRATE 127.0.0.1 1 x 0 100",
        "RESTORE x 0 y",
        "ACL LIST",
        "ACL SETUSER default +@all",
        "CLIENT LIST",
        "CLIENT KILL ID 1",
        "CLIENT PAUSE 1",
        "MONITOR",
        "CLUSTER INFO",
        "FAILOVER",
        "SYNC",
        "FUNCTION FLUSH",
    ],
)
def test_command_that_the_platform_does_not_need_is_refused(server: RedisServer, command: str) -> None:
    with redis.Redis.from_url(server.url) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*command.split())


def test_debug_is_off(server: RedisServer) -> None:
    with redis.Redis.from_url(server.url) as client, pytest.raises(redis.exceptions.ResponseError):
        client.execute_command("DEBUG", "SLEEP", "0")


def test_what_the_platform_needs_is_there(server: RedisServer) -> None:
    with redis.Redis.from_url(server.url) as client:
        assert client.eval("return redis.call('INCR', KEYS[1])", 1, "count") == 1
        client.flushdb()
        assert client.get("count") is None


def test_compose_names_servers_with_their_fixes() -> None:
    text = (Path(__file__).resolve().parents[2] / "compose.yaml").read_text()
    (version,) = re.findall(r"image: valkey/valkey:([0-9.]+)", text)
    assert version_fault("Valkey", version) == ""
