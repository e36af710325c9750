"""Calls of sessions pass the gates of tools; a call that a gate wants reviewed is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals.models import Card, GatePause
from apps.autonomy.enums import SessionStatus
from apps.autonomy.models import Finding
from apps.gates.services import save_gate
from apps.guard.models import ToolCall
from kernel.tenancy import tenant_scope
from tests.autonomy.test_models import CLOSE, DONE, MODEL
from tests.factories.autonomy import House
from tests.factories.pauses import asking_gate
from tests.factories.skills import install, make_folder, read_tool
from tests.fakes.openai_server import final

LOOK = final({"action": "tool", "tool": "look", "arguments": {}})


def run_with_gate(house: House, provider: Any, folder: Path, **gate: Any) -> Any:
    install(house.tenant, make_folder(folder, tools=[read_tool()]))
    with tenant_scope(house.tenant):
        save_gate(asking_gate("on_tool_call", config={"tools": ["look"]}, **gate), deployment_id=house.deployment.pk)
    with provider(LOOK, DONE, CLOSE):
        return house.through(house.task(model_name=MODEL, skills=["test-desk"]))


def states(house: House) -> list[str]:
    with tenant_scope(house.tenant):
        return list(ToolCall.objects.filter(tool="look").values_list("state", flat=True))


def test_call_that_a_gate_asks_about_is_refused_and_nobody_is_asked(
    modelled: House, provider: Any, tmp_path: Path
) -> None:
    session = run_with_gate(modelled, provider, tmp_path)
    assert states(modelled) == ["denied"]
    assert session.status == SessionStatus.COMPLETED
    with tenant_scope(modelled.tenant):
        assert not GatePause.objects.exists()
        assert not Card.objects.exists()


def test_refused_call_is_told_in_the_review_and_in_the_receipt(modelled: House, provider: Any, tmp_path: Path) -> None:
    session = run_with_gate(modelled, provider, tmp_path)
    with tenant_scope(modelled.tenant):
        told = Finding.objects.get(session=session, phase="ethics_review")
    (call,) = [each for each in modelled.receipt(session)["tool_calls"] if each["tool"] == "look"]
    assert "Calls were refused or failed: review_required" in told.content
    assert call["error_code"] == "approval_required"


@pytest.mark.parametrize(("pattern", "state"), [("(?!)", "denied"), ("^", "executed")])
def test_gate_that_blocks_or_passes_does_so_in_sessions_too(
    modelled: House, provider: Any, tmp_path: Path, pattern: str, state: str
) -> None:
    install(modelled.tenant, make_folder(tmp_path, tools=[read_tool()]))
    gate = asking_gate("on_tool_call", type="regex", config={"tools": ["look"], "pattern": pattern})
    with tenant_scope(modelled.tenant):
        save_gate(gate, deployment_id=modelled.deployment.pk)
    with provider(LOOK, DONE, CLOSE):
        modelled.through(modelled.task(model_name=MODEL, skills=["test-desk"]))
    assert states(modelled) == [state]
