"""A connection whose server has gone is noticed before it is used, also in a process with thousands of sockets."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

import psycopg
import pytest

from kernel.tenancy.scope import _is_connection_lost

FILES = 1100  # more than the descriptors that select() takes


@pytest.fixture
def many_files() -> Iterator[None]:
    """As many open files as a web process with so many sockets has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES)]
    yield
    for each in opened:
        os.close(each)


def test_connection_with_a_high_number_is_known_to_be_alive_or_lost(
    database: None, superuser_dsn: str, many_files: None
) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as line:
        assert line.fileno() > 1024
        assert not _is_connection_lost(line)
        with psycopg.connect(superuser_dsn, autocommit=True) as insider:
            insider.execute("SELECT pg_terminate_backend(%s)", [line.info.backend_pid])
        give_up = time.monotonic() + 60
        while not _is_connection_lost(line) and time.monotonic() < give_up:
            time.sleep(0.05)
        assert _is_connection_lost(line)
