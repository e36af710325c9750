"""A visitor, a briefing and a counter that remembers who was called."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic_ai.models import override_allow_model_requests

from kernel.llm.agents import Patience


@pytest.fixture
def local_provider() -> Iterator[None]:
    """Model requests are off in tests; the fake server on this machine is the one exception."""
    with override_allow_model_requests(True):
        yield


@pytest.fixture
def hasty() -> Patience:
    return Patience(first_token=0.4, between_tokens=0.4, request=3.0)
