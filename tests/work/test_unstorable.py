"""What no row can keep (NUL, halves of characters) in what a model or a check says: the work is recorded all the same,
once, and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.bus.enums import Queue
from apps.skills.models import Record
from apps.tenants.models import Deployment
from apps.work.models import VerificationRun
from kernel.tenancy import tenant_scope
from tests.factories.planning import MODEL, advice, body_of, course, failing, paused
from tests.factories.work import NOTE, Desk, make_desk, note
from tests.fakes.openai_server import FakeOpenAI, Reply, final

BAD = ["done\x00now", "done\ud800now"]


def with_models(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": MODEL}
        Deployment.objects.filter(pk=desk.deployment.pk).update(model_names=names, environment_keys=True)


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("field", ["summary", "next_steps", "artifact_refs"])
def test_work_whose_executor_says_it_is_done_once(
    tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, field: str, text: str
) -> None:
    desk = make_desk(tenant, tmp_path)
    with_models(desk)

    def answer(request: dict[str, Any]) -> Reply:
        said = {"summary": "ok", field: text if field == "summary" else [text]}
        acts = Reply(calls=(("act", json.dumps(note(50).args)),))
        return final(json.dumps(said)) if '"role": "tool"' in body_of(request) else acts

    planner.replies = answer
    item = desk.approved(approver)
    desk.work()
    ended = desk.item(item.pk)
    assert ended.status == "done"
    assert ended.attempts_made == 1
    assert desk.order().revision == 2


def test_work_whose_check_prints_it_has_its_proof(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path, check="import sys; sys.stdout.write('done' + chr(0) + 'now')")
    item = desk.approved(approver)
    desk.work(Queue.EXECUTOR)
    with tenant_scope(tenant):
        found = VerificationRun.objects.filter(attempt__work_item=item).first()
    assert found is not None
    assert found.results[0]["output"] == "done\ufffdnow"


@pytest.mark.parametrize("text", BAD)
def test_advice_with_it_is_taken(tenant: Any, tmp_path: Path, approver: Any, planner: FakeOpenAI, text: str) -> None:
    planner.replies = [advice(text)]
    desk = failing(tenant, tmp_path)
    item = paused(desk, approver)
    desk.work(Queue.PLANNER, Queue.RUNTIME)
    assert course(desk, item).waiting_for == ""


@pytest.mark.parametrize(
    "said",
    [
        '{"say": "a\\\\u0000b"}',
        '{"say": "a\\\\ud800b"}',
        '{"say": "ok", "\\\\u0000": 1}',
        '{"say": "ok", "n": NaN}',
        '{"say": "ok", "n": 1e400}',
    ],
)
def test_tool_that_says_it_has_no_effect_and_ends_with_a_reason(
    tenant: Any, tmp_path: Path, approver: Any, said: str
) -> None:
    desk = make_desk(tenant, tmp_path, script=NOTE.replace('print(json.dumps({"say": "noted"}))', f"print('{said}')"))
    item = desk.approved(approver)
    desk.work()
    with tenant_scope(tenant):
        revisions = set(Record.objects.filter(book="orders").values_list("revision", flat=True))
    assert desk.item(item.pk).status == "stuck"
    assert revisions == {1}
