"""A conversation whose chatbot accepts files, and its visitor's browser."""

from __future__ import annotations

import pytest

from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from tests.factories.sessions import make_session
from tests.factories.visitors import FILES, Browser, offer


@pytest.fixture
def session(deployment: Deployment) -> ChatSession:
    offer(deployment, **FILES, file_megabytes=1)
    return make_session(deployment)


@pytest.fixture
def visitor(deployment: Deployment, session: ChatSession) -> Browser:
    return Browser(deployment, session)
