"""URLs of Redis, with Sentinel and without, in the form of each client library."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.redis_servers import MasterPool, celery_broker, channel_host, connect, master_address, name_of
from tests.ports import free_port
from tests.programs import SERVERS, do_without

SENTINELS = "redis+sentinel://:pass%2Fword@one:26380,two,[::1]:26381/silas/3?sentinel_password=theirs"


def test_sentinel_url_names_sentinels_master_database_and_login() -> None:
    master = master_address(SENTINELS)
    assert master
    assert master.sentinels == (("one", 26380), ("two", 26379), ("::1", 26381))
    assert master.name == "silas"
    assert master.database == 3
    assert master.login == {"password": "pass/word"}
    assert master.sentinel_options["password"] == "theirs"


def test_sentinels_without_password_are_sent_none() -> None:
    master = master_address("redis+sentinel://one/silas")
    assert master
    assert "password" not in master.sentinel_options
    assert master.database == 0
    assert master.login == {}


@pytest.mark.parametrize("url", ["redis://one:6379/0", "rediss://one", "unix:///run/redis.sock", ""])
def test_any_other_url_names_one_server(url: str) -> None:
    assert master_address(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://one",
        "redis+sentinel:///silas",
        "redis+sentinel://one:port/silas",
        "redis+sentinel://one/a/b/c",
    ],
)
def test_incomplete_sentinel_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"redis\+sentinel://host|invalid literal"):
        master_address(url)


@pytest.mark.parametrize("option", ["ssl=true", "ssl_cert_reqs", "db=3", "sentinel_password=a&socket_timeout=1"])
def test_option_that_sentinel_urls_do_not_take_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=r"takes no option (ssl|ssl_cert_reqs|db|socket_timeout)$"):
        master_address(f"redis+sentinel://one/silas?{option}")


def test_operators_read_a_name_and_no_password() -> None:
    assert name_of(SENTINELS) == "silas (Sentinel)"
    assert name_of("redis://:secret@cache.example:6379/0") == "cache.example"
    assert name_of("unix:///run/redis.sock") == "Redis"


def test_celery_is_given_each_sentinel_and_the_master() -> None:
    url, options = celery_broker("redis+sentinel://:pw@one,two:1/silas/2")
    assert url == "sentinel://:pw@one:26379/2;sentinel://:pw@two:1/2"
    assert options["master_name"] == "silas"
    assert celery_broker("redis+sentinel://[fd00::1]:1/silas")[0] == "sentinel://[fd00::1]:1/0"


def test_channels_are_given_each_sentinel_and_the_master() -> None:
    host = channel_host("redis+sentinel://:pw@one,two:1/silas/2")
    assert isinstance(host, dict)
    assert host["sentinels"] == [("one", 26379), ("two", 1)]
    assert host["master_name"] == "silas"
    assert host["db"] == 2
    assert host["password"] == "pw"
    assert channel_host("redis://one:6379/0") == "redis://one:6379/0"


def test_pool_of_a_plain_url_is_redis_pys_own() -> None:
    pool = MasterPool.from_url("redis://one:6380/4", socket_timeout=2)
    assert pool.connection_kwargs["host"] == "one"
    assert pool.connection_kwargs["db"] == 4
    assert pool.connection_kwargs["socket_timeout"] == 2


@pytest.fixture
def sharded(tmp_path: Path) -> Iterator[str]:
    """One server that holds every slot of a Redis Cluster, and refuses scripts over keys of several slots."""
    port = free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    try:
        server = subprocess.Popen([*argv, "--cluster-enabled", "yes"], stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        do_without("needs Debian's redis-server", SERVERS)
    with redis.Redis(port=port) as client:
        for _ in range(100):
            try:
                client.execute_command("CLUSTER ADDSLOTSRANGE 0 16383")
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        while client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
            time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0"
    server.kill()
    server.wait()


def test_limits_counted_together_share_a_slot_of_a_cluster(sharded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_window, "redis_client", lambda: connect(sharded))
    limits = (Limit("visitor.messages.one", 1, 60), Limit("tenant.messages.two", 5, 60))
    assert fixed_window._consume(limits) is None
    exceeded = fixed_window._consume(limits)
    assert exceeded
    assert exceeded.limit == limits[0]
