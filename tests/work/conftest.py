from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories.work import Desk, make_desk


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)
