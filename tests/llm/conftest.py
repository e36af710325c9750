"""When may a test speak to a provider? Only to the fake one on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic_ai.models import override_allow_model_requests


@pytest.fixture
def local_provider() -> Iterator[None]:
    """Model requests are off in tests; this switches them on for a test against the fake server."""
    with override_allow_model_requests(True):
        yield
