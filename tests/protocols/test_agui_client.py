"""`@ag-ui/client` of npm, which checks every event against the protocol, against a running server."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.events.conftest import Web
from tests.factories.pauses import WAITING, answer, gate_card
from tests.protocols.conftest import make_agent
from tests.protocols.test_agui import hold_answers

PROGRAM = Path(__file__).parent / "agui_client"
pytestmark = [
    # Commands that install from npm's registry may have none.
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agui") / "client"
    shutil.copytree(PROGRAM, folder)
    subprocess.run(["npm", "ci", "--no-fund", "--no-audit"], cwd=folder, check=True, capture_output=True)
    return folder


def steps(program: Path, web: Web, deployment: Any) -> Iterator[dict[str, Any]]:
    agent = make_agent(web, deployment)
    argv = ["node", "run.mjs", agent.url, agent.key]
    with subprocess.Popen(argv, cwd=program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    assert process.returncode == 0


def test_client_is_answered_twice_in_one_thread(program: Path, web: Web, deployment: Any) -> None:
    first, second = steps(program, web, deployment)
    assert first["heard"][0] == "RUN_STARTED"
    assert first["heard"][-1] == "RUN_FINISHED"
    assert first["said"] != [""]
    assert len(first["said"]) == 1
    assert first["state"]["owner"] == "bot"
    assert second["said"] != [""]
    assert second["count"] == 4
    assert second["state"]["conversation"] == first["state"]["conversation"]


def test_client_waits_for_a_card_and_is_told_what_was_approved(
    program: Path, web: Web, deployment: Any, tenant: Any, owner: Any
) -> None:
    hold_answers(deployment)
    following = steps(program, web, deployment)
    held = next(following)
    card = gate_card(tenant)
    assert held["said"] == [WAITING]
    assert [interrupt["id"] for interrupt in held["interrupts"]] == [str(card.pk)]
    answer(tenant, owner, "approve")
    resumed = next(following)
    assert resumed["said"] == [card.payload["holds"]["response"]]
    assert resumed["interrupts"] == []
    (last,) = following
    assert last["said"] == [WAITING]
