from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

from tests.factories.autonomy import RETURNS, House, make_house
from tests.fakes.openai_server import FakeOpenAI, serving_in_thread


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`provider(*replies)`: a local server that acts as a model provider, for the test and for its subprocesses."""

    @contextmanager
    def serving(*replies: Any) -> Iterator[FakeOpenAI]:
        told = replies[0] if callable(replies[0]) else list(replies)
        with serving_in_thread(told) as fake:
            monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
            monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
            yield fake

    return serving


@pytest.fixture
def modelled(house: House, tmp_path: Path) -> House:
    """A company with a document, whose chatbot may use the provider's key of this process."""
    house.know(tmp_path, returns=RETURNS)
    house.change(house.deployment, environment_keys=True)
    return house
