from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories.autonomy import RETURNS, House, make_house


@pytest.fixture
def house(tenant: Any) -> House:
    return make_house(tenant)


@pytest.fixture
def modelled(house: House, tmp_path: Path) -> House:
    """A company with a document, whose chatbot may use the provider's key of this process."""
    house.know(tmp_path, returns=RETURNS)
    house.change(house.deployment, environment_keys=True)
    return house
