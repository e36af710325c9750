"""Can a stranger do what docs/connections.md says? Its skill is taken from its text, installed and set up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from apps.connections import checking, holding
from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection
from apps.connections.schemas import Wanted
from apps.connections.services import requesting
from apps.skills.services import install_version
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.connections.links import said_yes
from tests.connections.test_secrets import send
from tests.connections.test_setup import Beside
from tests.factories.connections import reread

TEXT = Path(__file__).resolve().parents[2] / "docs" / "connections.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = re.findall(r"```\w+ file=(\S+)\n(.*?)```", TEXT.read_text(), re.DOTALL)
    for name, text in found:
        path = tmp_path / "badge-desk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert len(found) == 4
    return tmp_path / "badge-desk"


@pytest.mark.parametrize(("given", "state"), [("desk-4711-key", SetupState.DONE), ("something", SetupState.FAILED)])
def test_skill_of_the_page_is_set_up(tenant: Any, owner: Any, folder: Path, given: str, state: SetupState) -> None:
    with tenant_scope(tenant):
        install_version(folder)
        row, _ = requesting.request(Wanted(skill="badge-desk", name="Badges"), actor="system")
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    beside = Beside(tenant, setup)
    send(owner, beside.asks().step["request"]["ref_id"], {"value": given})
    assert beside.ends().state == state
    if state == SetupState.DONE:
        with tenant_scope(tenant):
            Connection.objects.update(next_check_at=now())
        assert checking.check_of(tenant.pk) == 1 and reread(row).status == ConnectionStatus.ACTIVE
    assert holding.hold(tenant.pk, setup.pk) is False
