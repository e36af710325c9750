"""Runs that end with their test, however it went; and who opens the administration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.tenants.models import User
from tests.factories.audit import tampering
from tests.platform.administration import browser_of
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


@pytest.fixture
def root(database: None) -> Client:
    return browser_of(User.objects.create_superuser(f"root-{uuid4().hex}@example.test", "a-long-password"))


@pytest.fixture
def keeper(owner: Any) -> Client:
    """The tenant's owner at the administration."""
    return browser_of(owner)


@pytest.fixture
def tamper(superuser_dsn: str) -> Callable[[str, list[Any]], None]:
    """Execute one statement as a hostile administrator of the database, with every trigger asleep."""

    def execute(statement: str, values: list[Any]) -> None:
        with tampering(superuser_dsn) as cursor:
            cursor.execute(statement.encode(), values)

    return execute
