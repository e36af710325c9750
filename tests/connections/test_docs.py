"""The skills in docs/connections.md work as described: they are taken from its text, installed and set up. One has a
secure field, one signs in through the browser and one with a code, these two at a real OAuth 2 server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.connections.enums import ConnectionStatus, SetupState
from apps.connections.models import Connection, SetupRun
from apps.connections.schemas import NewConnection
from apps.connections.services import lifecycle, requests
from apps.skills.services import install_version
from kernel.clock import now
from kernel.tenancy import tenant_scope
from sandbox import Choice, configure
from tests.connections.links import said_yes
from tests.connections.test_secrets import send
from tests.connections.test_setup import Beside, credentials_of
from tests.factories.connections import check_due, reread
from tests.factories.skills import bundle
from tests.services import oauth
from tests.services.oauth import CALLBACK, Service

TEXT = Path(__file__).resolve().parents[2] / "docs" / "connections.md"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """The skills of the page; files that the skills share are on it once."""
    found = re.findall(r"```\w+ file=(\S+)\n(.*?)```", TEXT.read_text(), re.DOTALL)
    texts = dict(found)
    assert len(texts) == len(found) == 8
    for name in ("badge-browser", "badge-code"):
        for script in ("scripts/probe.py", "scripts/health_check.py"):
            texts[f"{name}/{script}"] = texts[f"badge-desk/{script}"]
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def begun(tenant: Any, owner: Any, folder: Path, **settings: Any) -> tuple[Connection, Beside]:
    bundle(folder)
    with tenant_scope(tenant):
        install_version(folder)
        wanted = NewConnection(skill=folder.name, name="Badges", settings=settings)
        row, _ = requests.request_connection(wanted, actor="system", callback=CALLBACK)
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    return row, Beside(tenant, setup)


def is_up(tenant: Any, row: Connection, ended: SetupRun) -> None:
    assert ended.state == SetupState.DONE
    assert ended.failure is None
    with tenant_scope(tenant):
        Connection.objects.update(next_check_at=now())
    assert check_due(tenant) == 1
    assert reread(row).status == ConnectionStatus.ACTIVE


@pytest.mark.parametrize(("given", "state"), [("desk-4711-key", SetupState.DONE), ("something", SetupState.FAILED)])
def test_skill_with_a_secure_field_is_set_up(
    tenant: Any, owner: Any, folders: Path, given: str, state: SetupState
) -> None:
    row, beside = begun(tenant, owner, folders / "badge-desk")
    send(owner, beside.asks().step["request"]["ref_id"], {"value": given})
    ended = beside.ends()
    assert ended.state == state
    if state == SetupState.DONE:
        is_up(tenant, row, ended)


@pytest.fixture
def service() -> Iterator[Service]:
    with oauth.serving() as found:
        configure(Choice(egress_private=(found.place,)))
        yield found
        configure(Choice())


def test_skill_in_the_browser_is_set_up(tenant: Any, owner: Any, folders: Path, service: Service) -> None:
    row, beside = begun(tenant, owner, folders / "badge-browser", **service.settings)
    setup = beside.asks()
    with tenant_scope(tenant):
        address = lifecycle.open_redirect(row.pk, user=owner, browser="b")
        lifecycle.finish_redirect(setup.state_token, service.sign_in(address), user=owner, browser="b")
    is_up(tenant, row, beside.ends())
    assert credentials_of(tenant, row)["access"] == service.tokens[0].access_token


def test_skill_with_a_code_is_set_up(tenant: Any, owner: Any, folders: Path, service: Service) -> None:
    row, beside = begun(tenant, owner, folders / "badge-code", **service.device_settings)
    service.enter(beside.asks().step["user_code"])
    is_up(tenant, row, beside.ends())
    assert credentials_of(tenant, row)["access"] == service.tokens[0].access_token
