from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic_ai import models

from tests.fakes.openai_server import FakeOpenAI, serving_in_thread


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`provider(*replies)`: a local server that acts as a model provider."""

    @contextmanager
    def serving(*replies: Any) -> Iterator[FakeOpenAI]:
        told = replies[0] if callable(replies[0]) else list(replies)
        with serving_in_thread(told) as fake:
            monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
            monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
            yield fake

    return serving
