"""Runs that end with their test, however it went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.platform.runs import Run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start `manage.py up` with these options and variables on this test's own `var`."""
    started: list[Run] = []

    def one(*options: str, **env: str) -> Run:
        started.append(Run(tmp_path, *options, **env))
        return started[-1]

    yield one
    for run in started:
        run.end()
