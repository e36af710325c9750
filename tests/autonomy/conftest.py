from __future__ import annotations

from typing import Any

import pytest

from tests.factories.autonomy import House, make_house


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)
