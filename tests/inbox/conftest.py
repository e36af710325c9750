from __future__ import annotations

from typing import Any

import pytest

from apps.sessions.models import ChatSession
from tests.factories.sessions import make_session, say


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    """A conversation in which a visitor asked something."""
    made = make_session(deployment)
    say(made, "Does my policy cover a burst pipe?")
    return made
