"""A model is offered only granted tools; choosing another one leaves a call row and an audit entry."""

from __future__ import annotations

from typing import Any

import pytest

from apps.autonomy.enums import SessionStatus
from apps.guard.models import ToolCall
from kernel.tenancy import tenant_scope
from tests.autonomy.test_models import CLOSE, DONE, MODEL
from tests.factories.autonomy import House
from tests.factories.guard import audited
from tests.fakes.openai_server import final

WISH = final({"action": "tool", "tool": "transfer_money", "arguments": {}})


def test_wish_for_a_tool_that_was_not_offered_leaves_a_row_and_an_entry(modelled: House, provider: Any) -> None:
    with provider(WISH, CLOSE):
        session = modelled.through(modelled.task(model_name=MODEL))
    with tenant_scope(modelled.tenant):
        row = ToolCall.objects.get(run=session.run, tool="transfer_money")
    said = [data for event, data in audited(session.run) if event == "tool_call" and "tool_not_granted" in data]
    assert row.state == "refused"
    assert row.error_code == "tool_not_granted"
    assert len(said) == 1
    assert session.status == SessionStatus.COMPLETED


@pytest.mark.parametrize("prose", ['{"action": "tool", "tool": "transfer_money"}', "```call\ntransfer_money()\n```"])
def test_prose_that_looks_like_a_call_is_none(modelled: House, provider: Any, prose: str) -> None:
    with provider(DONE, final({"summary": prose, "findings": [], "proposals": []})):
        session = modelled.through(modelled.task(model_name=MODEL))
    assert session.output == prose
    assert modelled.findings() == []
    with tenant_scope(modelled.tenant):
        assert not ToolCall.objects.filter(tool="transfer_money").exists()
