"""Connect to Redis by its URL: to a single server, or to the one that Sentinel names the master.

`redis://host:6379/0`, `rediss://…` and `unix://…` name one server, as redis-py reads them. With Sentinel the URL is
`redis+sentinel://[user:password@]host[:26379][,host[:26379]…]/master[/database]`; `?sentinel_password=…` where the
sentinels ask for one themselves. Each client library has its own form of this; the functions here give it.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

import redis
from redis.sentinel import Sentinel, SentinelConnectionPool

_SCHEME = "redis+sentinel"
_SENTINEL_PORT = 26379
# A sentinel that does not answer must not delay asking the next one.
_SENTINEL_TIMEOUT_SECONDS = 1.0


@dataclass(frozen=True)
class MasterAddress:
    """A master by name, and the sentinels (host, port) that know where it is. `login`: of the master, as redis-py's
    arguments; `sentinel_password`: of the sentinels, "" for none."""

    sentinels: tuple[tuple[str, int], ...]
    name: str
    database: int
    login: dict[str, str]
    sentinel_password: str

    @property
    def sentinel_options(self) -> dict[str, object]:
        timeouts = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), _SENTINEL_TIMEOUT_SECONDS)
        return timeouts | ({"password": self.sentinel_password} if self.sentinel_password else {})


def master_address(url: str) -> MasterAddress | None:
    """The master that a `redis+sentinel` URL names; None for any other URL. Raises `ValueError` for a bad one."""
    if not url.startswith(f"{_SCHEME}:"):
        return None
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    options = parse_qs(parts.query, keep_blank_values=True)
    name, *database = parts.path.strip("/").split("/")
    if not hosts or not name or len(database) > 1:
        raise ValueError(f"a Redis behind Sentinel is {_SCHEME}://host[:port][,host[:port]…]/master[/database]")
    if unknown := sorted(options.keys() - {"sentinel_password"}):
        # An option such as `ssl` that was passed over would leave the connections without it.
        raise ValueError(f"a Redis behind Sentinel takes no option {', '.join(unknown)}")
    username, _, password = user.partition(":")
    login = {"username": unquote(username), "password": unquote(password)}
    return MasterAddress(
        sentinels=tuple(_host_and_port(host) for host in hosts.split(",")),
        name=name,
        database=int(database[0]) if database else 0,
        login={field: value for field, value in login.items() if value},
        sentinel_password=options.get("sentinel_password", [""])[0],
    )


def connect(url: str, **options: object) -> redis.Redis:
    """A client with `options` of redis-py. Connections are made when they are needed."""
    return redis.Redis.from_pool(MasterPool.from_url(url, **options))


def name_of(url: str) -> str:
    """The name of this Redis for messages to operators, without its password."""
    if master := master_address(url):
        return f"{master.name} (Sentinel)"
    return urlsplit(url).hostname or "Redis"


class MasterPool:
    """`from_url` makes the pool of connections for a URL of any form; Django's cache takes this as its pool class."""

    @staticmethod
    def from_url(url: str, **options: object) -> redis.ConnectionPool:
        if not (master := master_address(url)):
            return redis.ConnectionPool.from_url(url, **options)
        sentinel = Sentinel(master.sentinels, sentinel_kwargs=master.sentinel_options)  # type: ignore[no-untyped-call]
        pool: redis.ConnectionPool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
            master.name, sentinel, db=master.database, **master.login, **options
        )
        return pool


def channel_host(url: str) -> str | dict[str, object]:
    """The URL in the form in which channels_redis takes a host."""
    if not (master := master_address(url)):
        return url
    return {
        "sentinels": list(master.sentinels),
        "master_name": master.name,
        "sentinel_kwargs": master.sentinel_options,
        "db": master.database,
        **master.login,
    }


def celery_broker(url: str) -> tuple[str, dict[str, object]]:
    """The broker's URL in Celery's form, and the transport options that belong to it."""
    if not (master := master_address(url)):
        return url.replace("unix://", "redis+socket://", 1), {}
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    hosts = [(f"[{host}]" if ":" in host else host, port) for host, port in master.sentinels]
    urls = [f"sentinel://{user}{at}{host}:{port}/{master.database}" for host, port in hosts]
    return ";".join(urls), {"master_name": master.name, "sentinel_kwargs": master.sentinel_options}


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if colon and not text.endswith("]"):
        return host.strip("[]"), int(port)
    return text.strip("[]"), _SENTINEL_PORT
