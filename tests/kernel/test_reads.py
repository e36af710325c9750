"""Statements that are sent together, and their values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from kernel.tenancy.reads import Read, Rows


def test_values_of_two_threads_do_not_wait_for_each_other() -> None:
    met = Barrier(2, timeout=5)

    def parse(rows: Rows) -> int:
        met.wait()
        return len(rows)

    def read() -> int:
        one = Read("", (), parse)
        one.rows = [(1,)]
        return one.value

    with ThreadPoolExecutor(2) as threads:
        assert [future.result() for future in [threads.submit(read), threads.submit(read)]] == [1, 1]
