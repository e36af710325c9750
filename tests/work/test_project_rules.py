"""What a project's approval covers, and which of its tasks may run (spec 5.2.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work import project_rules
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.schemas import WorkItemSpec
from kernel.errors import SilasError


def task(name: str, body: str = "B") -> WorkItemSpec:
    return WorkItemSpec(id=name, type=WorkItemType.TASK, title="T", body=body)


def project(body: str, *tasks: WorkItemSpec) -> WorkItemSpec:
    return WorkItemSpec(id="p", type=WorkItemType.PROJECT, title="P", body=body, tasks=[each.id for each in tasks])


ONE, TWO = task("a"), task("b")
BODY = project_rules.with_task_hashes("Do both.", [ONE, TWO])


def test_project_covers_its_tasks_by_their_hash() -> None:
    assert project_rules.covered_tasks(project(BODY, ONE, TWO)) == {"a": ONE.plan_hash, "b": TWO.plan_hash}


def test_hash_of_a_project_changes_with_one_word_of_a_task() -> None:
    changed = project_rules.with_task_hashes("Do both.", [ONE, task("b", "C")])
    assert project(BODY, ONE, TWO).plan_hash != project(changed, ONE, TWO).plan_hash


@pytest.mark.parametrize(
    "spec",
    [
        project("Do both.", ONE, TWO),
        project(BODY, ONE),
        project(BODY, TWO, ONE),
        project(BODY + BODY, ONE, TWO),
        project("> " + BODY.replace("\n", "\n> "), ONE, TWO),
    ],
)
def test_project_whose_block_is_not_its_own_covers_nothing(spec: WorkItemSpec) -> None:
    assert project_rules.covered_tasks(spec) == {}


def test_plan_that_writes_its_own_block_is_refused() -> None:
    with pytest.raises(SilasError, match="tasks block"):
        project_rules.with_task_hashes(BODY, [ONE])


STATUSES = st.sampled_from([status.value for status in WorkItemStatus])
AFTER = {"a": [], "b": ["a"], "c": ["a", "b"], "d": []}


@given(st.fixed_dictionaries(dict.fromkeys(AFTER, STATUSES)))
def test_task_is_ready_only_when_it_waits_and_all_before_it_are_done(statuses: dict[str, str]) -> None:
    expected = [
        name
        for name, before in AFTER.items()
        if statuses[name] == "pending" and {statuses[each] for each in before} <= {"done"}
    ]
    assert project_rules.ready_tasks(AFTER, statuses) == expected


@given(st.fixed_dictionaries(dict.fromkeys(AFTER, STATUSES)))
def test_project_is_done_only_when_every_task_is(statuses: dict[str, str]) -> None:
    assert project_rules.all_done(statuses) == (set(statuses.values()) == {"done"})
