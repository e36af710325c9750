"""A researcher reads only files of the work item it was asked about, by name."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from apps.bus.enums import Queue
from apps.guard import services as guard
from apps.guard.enums import Intent, Phase
from apps.guard.rules import PHASE_GRANTS
from apps.guard.schemas import Call, Done, Failed, RunRef
from apps.tenants.models import Deployment
from apps.work.locks import lock_course
from apps.work.models import ResearchRequest, WorkItem
from apps.work.services import planning
from kernel.tenancy import tenant_scope
from tests.factories.planning import MODEL, advice, body_of, failing, paused
from tests.factories.work import NOTE, Desk
from tests.fakes.openai_server import FakeOpenAI, Reply, final

LEAVES = (
    NOTE
    + """
import pathlib
pathlib.Path("/sandbox/out/letter.txt").write_text("Dear customer, your lamp is late.")
pathlib.Path("/sandbox/out/picture.bin").write_bytes(bytes(range(256)))
pathlib.Path("/sandbox/out/long.txt").write_text("x" * 30000)
"""
)


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return failing(tenant, tmp_path, script=LEAVES)


@pytest.fixture
def item(desk: Desk, approver: Any) -> WorkItem:
    return paused(desk, approver)


def read(desk: Desk, item: WorkItem, path: str) -> Any:
    """Return the value of a researcher's call, or the code of its failure."""
    with tenant_scope(desk.tenant):
        run_id = planning.run_of(item, lock_course(item))
    call = Call(tool="read_file", args={"path": path}, access=frozenset({"read_file"}))
    run = RunRef(desk.tenant.pk, run_id)
    outcome = asyncio.run(guard.guarded_call(run, Intent.READ_FILE, call, context={"work_item": item.pk}))
    return outcome.value if isinstance(outcome, Done) else getattr(outcome, "code", outcome)


def test_file_that_an_attempt_left_is_read(desk: Desk, item: WorkItem) -> None:
    assert read(desk, item, "letter.txt") == {
        "path": "letter.txt",
        "text": "Dear customer, your lamp is late.",
        "cut": False,
    }


def test_file_of_one_attempt_is_read_by_its_full_name(desk: Desk, item: WorkItem) -> None:
    assert read(desk, item, f"{item.pk}/{item.pk}/1/letter.txt")["text"].startswith("Dear customer")


def test_long_file_is_cut(desk: Desk, item: WorkItem) -> None:
    found = read(desk, item, "long.txt")
    assert len(found["text"]) == 20_000
    assert found["cut"] is True


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../letter.txt",
        "./letter.txt",
        "letter.txt/../letter.txt",
        "/sandbox/out/letter.txt",
        "file:///etc/passwd",
        "letter.txt\x00",
        "",
        "nowhere.txt",
        "*",
    ],
)
def test_path_that_is_no_name_of_a_file_of_the_work_reads_nothing(desk: Desk, item: WorkItem, path: str) -> None:
    assert read(desk, item, path) in ("file_missing", "invalid_arguments")


def test_file_that_is_no_text_is_not_read(desk: Desk, item: WorkItem) -> None:
    assert read(desk, item, "picture.bin") == "file_not_text"


def test_file_of_other_work_is_not_read(desk: Desk, item: WorkItem, approver: Any) -> None:
    other = desk.waiting(60)
    assert read(desk, other, f"{item.pk}/{item.pk}/1/letter.txt") == "file_missing"


def test_file_of_another_tenant_s_work_is_not_read(
    desk: Desk, item: WorkItem, other_tenant: Any, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = failing(other_tenant, tmp_path / "other")
    with tenant_scope(other_tenant):
        mine = other.waiting()
        run_id = planning.run_of(mine, lock_course(mine))
    call = Call(tool="read_file", args={"path": "letter.txt"}, access=frozenset({"read_file"}))
    run = RunRef(other_tenant.pk, run_id)
    outcome = asyncio.run(guard.guarded_call(run, Intent.READ_FILE, call, context={"work_item": item.pk}))
    assert isinstance(outcome, Failed)
    assert outcome.code == "file_missing"


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase != Phase.EXECUTION])
def test_files_of_work_are_read_in_no_other_phase(phase: Phase) -> None:
    assert Intent.READ_FILE not in PHASE_GRANTS[phase]


def test_planner_learns_from_research_what_a_failed_attempt_left(
    desk: Desk, item: WorkItem, planner: FakeOpenAI
) -> None:
    def answer(request: dict[str, Any]) -> Reply:
        said = body_of(request)
        if "Find out what is asked" in said:
            read = Reply(calls=(("read_file", json.dumps({"path": "letter.txt"})),))
            return final({"summary": "It says that the lamp is late."}) if "Dear customer" in said else read
        question = {"task": "What does the letter say?", "return_format": "one line", "max_tokens": 50}
        asked = Reply(calls=(("request_research", json.dumps(question)),))
        return advice() if "# Research:" in said or '"role": "tool"' in said else asked

    planner.replies = answer
    desk.work(Queue.PLANNER)
    with tenant_scope(desk.tenant):
        names = {"proxy": "builtin:grounded", "planner": MODEL, "executor": MODEL}
        Deployment.objects.filter(pk=desk.deployment.pk).update(model_names=names)
    desk.work(Queue.EXECUTOR, Queue.PLANNER)
    with tenant_scope(desk.tenant):
        answers = list(ResearchRequest.objects.filter(planning__work_item=item).values_list("result", flat=True))
    asked = [body_of(each) for each in planner.requests if "Find out what is asked" in body_of(each)]
    assert answers == ["It says that the lamp is late."]
    assert "> letter.txt" in asked[0]
