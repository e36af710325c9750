from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

from tests.factories.planning import advice
from tests.factories.work import Desk, make_desk
from tests.fakes.openai_server import FakeOpenAI, serving_in_thread


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


@pytest.fixture
def planner(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """Answers with advice until a test says otherwise."""
    with serving_in_thread([advice()]) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        yield fake
