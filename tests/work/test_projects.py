"""Projects: one approval for all tasks, each after its dependencies, with exactly the files it names (spec 5.2.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card, TokenUse
from apps.bus.models import QueueMessage
from apps.work import artifacts, queries, signals
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from apps.work.schemas import Proposal
from apps.work.services import cancellation
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall, call_block
from tests.factories.tenants import make_member
from tests.factories.work import NOTE, Desk, make_desk, note

# Leaves its note as a file, and a list of what it was given.
KEEPS = (
    NOTE
    + """
import pathlib
args, given = call["args"], pathlib.Path("/sandbox/inputs")
pathlib.Path("/sandbox/out/note.txt").write_text(str(args["note"]))
pathlib.Path("/sandbox/out", args["order"] + ".txt").write_text("of " + args["order"])
seen = {path.name: path.read_text() for path in sorted(given.iterdir())} if given.exists() else {}
pathlib.Path("/sandbox/out/seen.json").write_text(json.dumps(seen))
"""
)
FAILS_ON_99 = KEEPS.replace('print(json.dumps({"say": "noted"}))', "") + (
    "print(json.dumps({'refused': 'No.'} if args['note'] == 99 else {'say': 'noted'}))\n"
)


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path, script=FAILS_ON_99)


def task(name: str, *calls: PlannedCall, after: str = "", inputs: str = "") -> str:
    front = f"depends_on: [{after}]\n" if after else ""
    front += f"input_artifacts_from: [{inputs}]\n" if inputs else ""
    blocks = "\n".join(call_block(call) for call in calls)
    return f"````task\n---\nid: {name}\ntype: task\ntitle: {name}\n{front}---\n{blocks}\n````\n"


def project(*tasks: str, front: str = "") -> str:
    names = ", ".join(
        line.removeprefix("id: ") for text in tasks for line in text.split("\n") if line.startswith("id: ")
    )
    return f"---\nid: p\ntype: project\ntitle: P\ntasks: [{names}]\n{front}---\nDo all.\n\n" + "\n".join(tasks)


BOTH = project(task("one", note(31)), task("two", note(32, "H-3"), after="one"))


def proposed(desk: Desk, plan: str = BOTH) -> WorkItem:
    proposal: Proposal = desk.propose(plan_markdown=plan)
    assert proposal.work_item_id, proposal
    return desk.item(proposal.work_item_id)


def tasks(desk: Desk, item: WorkItem) -> list[WorkItem]:
    with tenant_scope(desk.tenant):
        return queries.children_of(desk.item(item.pk))


def statuses(desk: Desk, item: WorkItem) -> list[str]:
    return [desk.item(item.pk).status, *(task.status for task in tasks(desk, item))]


def run(desk: Desk, user: Any, plan: str = BOTH) -> WorkItem:
    item = proposed(desk, plan)
    desk.decide(item, user)
    desk.work()
    return desk.item(item.pk)


# --- refused at proposal


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (project(task("one", note(31), after="two"), task("two", note(32), after="one")), "plan_dependency_cycle"),
        (project(task("one", note(31), after="nowhere")), "plan_dependency_missing"),
        (project(task("one", note(31)), task("two", note(31))), "plan_call_twice"),
        (project(task("one", note(31)), task("two")), "plan_without_calls"),
        (project(task("one", note(31)), task("two", PlannedCall("drop", {}))), "tool_not_granted"),
        (project(task("one", note(31)), task("two", note(101))), "gate_blocked"),
        (project(*(task(f"t{n}", note(30 + n)) for n in range(11))), "plan_too_many_calls"),
        (BOTH + '\n```tasks\n[{"id":"x","plan_hash":"y"}]\n```\n', "plan_tasks_block"),
        (BOTH + "\n~~~\nnever closed\n", "plan_tasks_block"),
    ],
)
def test_project_that_cannot_work_is_refused_before_anybody_is_asked(desk: Desk, plan: str, code: str) -> None:
    with tenant_scope(desk.tenant):
        before = WorkItem.objects.count()
    refused = desk.propose(plan_markdown=plan)
    with tenant_scope(desk.tenant):
        assert refused.code == code
        assert WorkItem.objects.count() - before == 0
        assert Card.objects.count() == 0


# --- one approval


def test_project_is_put_before_a_person_once(desk: Desk) -> None:
    item = proposed(desk)
    with tenant_scope(desk.tenant):
        assert list(Card.objects.values_list("subject_id", flat=True)) == [item.pk]


def test_card_of_a_project_shows_every_call_and_its_checks(desk: Desk) -> None:
    details = desk.card(proposed(desk)).details
    assert [call["args"]["note"] for call in details["calls"]] == [31, 32]
    assert len(details["checks"]) == 1


def test_approval_of_a_project_is_spent_once_for_all_its_tasks(desk: Desk, approver: Any) -> None:
    item = run(desk, approver)
    with tenant_scope(desk.tenant):
        uses = list(TokenUse.objects.values_list("bound_hash", flat=True))
    assert uses == [item.plan_hash]
    assert statuses(desk, item) == ["done", "done", "done"]


def test_each_task_takes_its_effect(desk: Desk, approver: Any) -> None:
    run(desk, approver)
    assert desk.order().data["note"] == 31
    assert desk.order("H-3").data["note"] == 32


def test_task_whose_plan_was_changed_after_the_approval_is_not_covered(desk: Desk, approver: Any) -> None:
    item = proposed(desk)
    desk.decide(item, approver)
    first = tasks(desk, item)[0]
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=first.pk).update(plan=first.plan.replace('note\\":31', 'note\\":77'))
    desk.work()
    ended = desk.item(first.pk)
    assert ended.reason == WorkReason.NOT_APPROVED
    assert ended.last_error == "not_covered"
    assert desk.order().revision == 1


def test_task_that_was_slipped_into_a_project_is_not_covered(desk: Desk, approver: Any) -> None:
    """A row that claims to belong to an approved project, with a plan that the project does not name."""
    item, other = proposed(desk), desk.waiting(60)
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        token = desk.item(item.pk).approval_token
        WorkItem.objects.filter(pk=other.pk).update(parent=item, approval_token=token)
        message = QueueMessage.objects.filter(queue="executor").first()
        assert message
        QueueMessage.objects.filter(pk=message.pk).update(task_id=other.pk)
    desk.work()
    assert desk.item(other.pk).last_error == "not_covered"
    assert desk.order().data.get("note") is None


def test_task_of_a_project_that_is_over_does_not_begin(desk: Desk, approver: Any) -> None:
    item = proposed(desk, project(task("one", note(31))))
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(status=WorkItemStatus.FAILED)
    desk.work()
    assert tasks(desk, item)[0].last_error == "project_over"
    assert desk.order().revision == 1


@pytest.mark.parametrize(("verdict", "reason"), [(ApprovalVerdict.DECLINED, WorkReason.DECLINED)])
def test_no_to_a_project_is_a_no_to_its_tasks(desk: Desk, approver: Any, verdict: ApprovalVerdict, reason: str) -> None:
    item = proposed(desk)
    desk.decide(item, approver, verdict)
    assert {(task.status, task.reason) for task in tasks(desk, item)} == {("blocked", reason)}


# --- in order


def test_task_waits_for_what_it_depends_on(desk: Desk, approver: Any) -> None:
    item = proposed(desk)
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        owed = list(QueueMessage.objects.filter(queue="executor").values_list("task_id", flat=True))
    assert owed == [tasks(desk, item)[0].pk]


def test_tasks_that_depend_on_nothing_are_owed_together(desk: Desk, approver: Any) -> None:
    item = proposed(desk, project(task("one", note(31)), task("two", note(32, "H-3"))))
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        owed = set(QueueMessage.objects.filter(queue="executor").values_list("task_id", flat=True))
    assert owed == {task.pk for task in tasks(desk, item)}


FAILING = project(
    task("one", note(99)), task("two", note(32, "H-3"), after="one"), task("three", note(33, "H-3"), after="two")
)


def test_failing_task_ends_the_project_and_what_had_not_begun(desk: Desk, approver: Any) -> None:
    item = run(desk, approver, FAILING)
    found = [(task.status, task.reason) for task in tasks(desk, item)[1:]]
    assert item.status == WorkItemStatus.FAILED
    assert item.reason == WorkReason.CHILD
    assert found == [(WorkItemStatus.BLOCKED, WorkReason.DEPENDENCY)] * 2


def test_failing_task_is_named_by_the_project(desk: Desk, approver: Any) -> None:
    assert run(desk, approver, FAILING).last_error.startswith("Change H-1: ")


def test_nothing_behind_a_failing_task_takes_effect(desk: Desk, approver: Any) -> None:
    run(desk, approver, FAILING)
    assert desk.order("H-3").revision == 1


def test_project_adds_up_what_its_tasks_used(desk: Desk, approver: Any) -> None:
    item = run(desk, approver)
    assert item.used.attempts == 2
    assert item.used.executor_runs == 2


def test_project_is_told_as_one_thing(desk: Desk, approver: Any) -> None:
    told: list[str] = []
    item = proposed(desk)

    def hear(moved: WorkItem, status: str, progress: signals.Progress) -> None:
        told.extend([str(progress.text)] if moved.session_id else [])

    signals.work_changed.connect(hear)
    try:
        desk.decide(item, approver)
        desk.work()
    finally:
        signals.work_changed.disconnect(hear)
    title = "Change H-1, and 1 more"
    assert told == [f"Approved by our team: {title}.", f"In progress: {title}.", f"Done: {title}."]


def test_project_waits_in_the_conversation_as_one_thing(desk: Desk) -> None:
    item = proposed(desk)
    assert item.session_id
    with tenant_scope(desk.tenant):
        assert queries.open_work(item.session_id, subject="C-1").value == [("C-1", "Change H-1, and 1 more")]


def test_project_that_staff_call_off_ends_with_what_had_not_begun(desk: Desk, approver: Any) -> None:
    item = proposed(desk)
    desk.decide(item, approver)
    with tenant_scope(desk.tenant):
        cancellation.cancel_for_staff(item.pk, user=approver)
    desk.work()
    assert statuses(desk, item) == ["failed", "blocked", "blocked"]
    assert desk.item(item.pk).reason == WorkReason.CANCELLED
    assert desk.order().revision == 1


# --- its own checks, which only staff can write

OWN = "verify: [{name: both, run: python3 -c 'print(2)', expect: {equals: '%s'}}]\n"


@pytest.mark.parametrize(("expected", "ends"), [("2", ("done", "")), ("3", ("failed", "verification_failed"))])
def test_project_s_own_checks_decide_after_its_last_task(
    desk: Desk, approver: Any, expected: str, ends: tuple[str, str]
) -> None:
    plan = project(task("one", note(31)), task("two", note(32, "H-3")), front=OWN % expected)
    item_id = desk.propose(plan_markdown=plan, by_staff=True).work_item_id
    assert item_id
    desk.decide(desk.item(item_id), approver)
    desk.work()
    item = desk.item(item_id)
    assert (item.status, item.reason) == ends


def test_project_of_a_visitor_s_model_has_no_checks_of_its_own(desk: Desk) -> None:
    plan = project(task("one", note(31)), task("two", note(32, "H-3")), front=OWN % "3")
    assert proposed(desk, plan).spec.verify == []


# --- files


def seen(desk: Desk, item: WorkItem) -> bytes:
    with tenant_scope(desk.tenant):
        return artifacts.files_of(item)["seen.json"]


@pytest.mark.parametrize(
    ("inputs", "given"),
    [
        ("", b"{}"),
        ('"*"', b'{"H-1.txt": "of H-1", "note.txt": "31", "seen.json": "{}"}'),
        ("note.txt", b'{"note.txt": "31"}'),
        ("one/H-1.txt", b'{"H-1.txt": "of H-1"}'),
    ],
)
def test_task_gets_exactly_the_files_it_names(desk: Desk, approver: Any, inputs: str, given: bytes) -> None:
    plan = project(task("one", note(31)), task("two", note(32, "H-3"), after="one", inputs=inputs))
    item = run(desk, approver, plan)
    assert seen(desk, tasks(desk, item)[1]) == given


def test_task_that_names_a_file_nobody_left_is_blocked_before_it_acts(desk: Desk, approver: Any) -> None:
    plan = project(task("one", note(31)), task("two", note(32, "H-3"), after="one", inputs="nowhere.txt"))
    second = tasks(desk, run(desk, approver, plan))[1]
    assert second.reason == WorkReason.LINKAGE
    assert second.last_error == "The file nowhere.txt is not there."
    assert desk.order("H-3").revision == 1


def test_task_that_names_a_file_of_two_tasks_is_blocked(desk: Desk, approver: Any) -> None:
    last = task("last", note(33, "H-3"), after="one, two", inputs="note.txt")
    plan = project(task("one", note(31)), task("two", note(32, "H-3")), last)
    assert tasks(desk, run(desk, approver, plan))[2].last_error == "The file note.txt was left by two of them."


# --- follow-ups


def finished(desk: Desk, user: Any) -> WorkItem:
    item = desk.approved(user, 40)
    desk.work()
    return desk.item(item.pk)


def test_follow_up_gets_all_files_of_what_it_follows(desk: Desk, approver: Any) -> None:
    first = finished(desk, approver)
    proposal = desk.propose(note(41), continuation_of=first.pk)
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), approver)
    desk.work()
    second = desk.item(proposal.work_item_id)
    assert second.follow_up_of_id == first.pk
    assert second.spec.input_artifacts_from == ["*"]
    assert b"note.txt" in seen(desk, second)


def test_follow_up_of_unfinished_work_is_refused(desk: Desk) -> None:
    assert desk.propose(note(41), continuation_of=desk.waiting().pk).code == "linkage_missing"


@pytest.mark.parametrize("subject", ["C-2", ""])
def test_follow_up_of_another_customers_work_is_refused(desk: Desk, approver: Any, subject: str) -> None:
    first = finished(desk, approver)
    assert desk.propose(note(41), continuation_of=first.pk, subject=subject).code == "linkage_missing"


def test_follow_up_of_another_tenants_work_is_refused(
    desk: Desk, other_tenant: Any, approver: Any, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = make_desk(other_tenant, tmp_path / "other", script=KEEPS)
    theirs = finished(other, make_member(other_tenant, "approver"))
    assert desk.propose(note(41), continuation_of=theirs.pk).code == "linkage_missing"


def test_follow_up_never_runs_on_the_standing_approval(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    first = finished(desk, owner)
    assert desk.propose(note(5, "H-3"), continuation_of=first.pk).outcome == "card"
