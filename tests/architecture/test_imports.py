"""The order of the house: import-linter's contracts hold, name every room, and break when the house is broken."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import PACKAGES, ROOT

SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: dict[str, dict[str, Any]] = {contract["id"]: contract for contract in SETTINGS["contracts"]}
ROOMS = [
    "console",
    "simulations",
    "protocols",
    "events",
    "suggestions",
    "autonomy",
    "imports",
    "copilot",
    "inbox",
    "messengers",
    "contacts",
    "visitors",
    "sessions",
    "access",
    "work",
    "connections",
    "widgets",
    "releases",
    "skills",
    "memory",
    "persona",
    "knowledge",
    "toolservers",
    "guard",
    "safety",
    "approvals",
    "gates",
    "bus",
    "tenants",
    "audit",
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our source, in which walls may be broken."""
    copy = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=lambda *_: {"static", "templates", "__pycache__"})
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def judge(house: Path, contract: str) -> subprocess.CompletedProcess[str]:
    options = ["--no-logo", "--no-cache", "--contract", contract]
    lint = Path(sys.executable).with_name("lint-imports")
    return subprocess.run([lint, *options], cwd=house, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_contract_is_kept(house: Path, contract: str) -> None:
    judged = judge(house, contract)
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize(
    ("contract", "place", "line"),
    [
        ("house", "kernel/clock.py", "import apps.tenants.models"),
        ("house", "apps/audit/queries.py", "import silas_platform.urls"),
        ("rooms", "apps/audit/queries.py", "import apps.sessions.models"),
        ("rooms", "apps/gates/rules.py", "import apps.approvals.models"),
        ("pure-rules", "apps/approvals/rules.py", "from django.db import models"),
        ("pure-rules", "apps/approvals/rules.py", "from kernel.clock import now"),
        ("keys", "apps/work/plans.py", "import apps.approvals.keys.signing"),
        ("keys", "silas_platform/urls.py", "import apps.approvals.keys.signing"),
        ("shelves", "apps/bus/rules.py", "import apps.bus.services"),
        ("shelves", "apps/approvals/tokens/schemas.py", "import apps.approvals.tokens.services"),
        ("shelves", "apps/bus/models.py", "import apps.bus.queries"),
    ],
)
def test_contract_breaks_with_wrong_import(house: Path, contract: str, place: str, line: str) -> None:
    whole = (house / place).read_text()
    (house / place).write_text(f"{whole}\n{line}\n")
    try:
        assert judge(house, contract).returncode == 1
    finally:
        (house / place).write_text(whole)


def test_room_that_nobody_named_breaks_contract(house: Path) -> None:
    (house / "apps" / "attic").mkdir()
    (house / "apps" / "attic" / "__init__.py").touch()
    try:
        assert judge(house, "rooms").returncode == 1
    finally:
        shutil.rmtree(house / "apps" / "attic")


def test_rooms_stand_in_their_order() -> None:
    listed = [room.strip(" ()") for layer in CONTRACTS["rooms"]["layers"] for room in layer.split("|")]
    assert listed == ROOMS
