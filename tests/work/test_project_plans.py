"""A project is one plan with the plans of its tasks: parsed in a runnable order, or rejected with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.work import plans, rules
from kernel.errors import SilasError


def task(name: str, *after: str, front: str = "", body: str = "Do it.") -> str:
    waits = f"depends_on: [{', '.join(after)}]\n" if after else ""
    return f"````task\n---\nid: {name}\ntype: task\ntitle: {name}\n{waits}{front}---\n{body}\n````\n"


def project(*tasks: str, listed: str = "[build, test]", front: str = "") -> str:
    body = "\n".join(tasks)
    return (
        f"---\nid: p\ntype: project\ntitle: P\ntasks: {listed}\n{front}---\n# Why\n\nBecause.\n\n{body}\nThen rest.\n"
    )


def read(markdown: str) -> plans.ProjectPlan:
    return plans.read_project(plans.parse(markdown))


def refusal(markdown: str) -> SilasError:
    with pytest.raises(SilasError) as caught:
        read(markdown)
    return caught.value


BUILD, TEST = task("build"), task("test", "build")


@pytest.mark.parametrize(
    ("markdown", "code"),
    [
        (project(BUILD, TEST, listed="[]"), "plan_tasks_missing"),
        (project(BUILD), "plan_task_not_written"),
        (project(BUILD, TEST, task("more")), "plan_task_unlisted"),
        (project(BUILD, BUILD, TEST), "plan_task_twice"),
        (project(BUILD, TEST, listed="[build, test, build]"), "plan_task_twice"),
        (project(task("build", "test"), TEST), "plan_dependency_cycle"),
        (project(task("build", "build"), TEST), "plan_dependency_cycle"),
        (project(BUILD, task("test", "nowhere")), "plan_dependency_missing"),
        (project(BUILD, TEST.replace("type: task", "type: goal")), "plan_task_not_a_task"),
        (project(BUILD, TEST.replace("type: task", "type: project")), "plan_task_not_a_task"),
        (project(BUILD, task("test", front="agent: stream\n")), "plan_field_invalid"),
        (project(BUILD, task("test", front="budget: {max_tokens: 0}\n")), "plan_field_invalid"),
        (project(BUILD, task("test", front="surprise: 1\n")), "plan_field_unknown"),
        (project(BUILD, "````task\nJust words.\n````\n"), "plan_front_matter_missing"),
        (project(*(task(f"t{n}") for n in range(21)), listed=str([f"t{n}" for n in range(21)])), "plan_too_many_tasks"),
    ],
)
def test_read_of_broken_project_is_refused(markdown: str, code: str) -> None:
    assert refusal(markdown).code == code


def test_cycle_is_named() -> None:
    tasks = [task("a", "c"), task("b", "a"), task("c", "b"), task("d")]
    circle = refusal(project(*tasks, listed="[a, b, c, d]")).extra["cycle"]
    assert len(circle) == 4
    assert circle[0] == circle[-1]
    assert set(circle) == {"a", "b", "c"}


def test_refusal_inside_a_task_names_the_line_of_the_whole_plan() -> None:
    markdown = project(BUILD, task("test", front="surprise: 1\n"))
    body_begins = markdown.split("\n").index("# Why")
    line = refusal(markdown).extra["line"]
    assert markdown.split("\n")[body_begins + line - 1] == "surprise: 1"


def test_tasks_come_after_what_they_depend_on() -> None:
    tasks = [task("ship", "test", "docs"), task("test", "build"), task("docs"), task("build")]
    assert [each.id for each in read(project(*tasks, listed="[ship, test, docs, build]")).tasks] == [
        "docs",
        "build",
        "test",
        "ship",
    ]


def test_project_keeps_its_prose_and_loses_its_blocks() -> None:
    body = read(project(BUILD, TEST)).spec.body
    assert body.startswith("# Why")
    assert body.endswith("Then rest.")
    assert "task" not in body


def test_call_of_a_task_is_no_call_of_the_project() -> None:
    call = '```call\n{"tool": "act", "args": {}}\n```'
    spec = plans.parse(project(task("build", body=call), TEST))
    assert spec.calls == ()
    assert [len(each.calls) for each in plans.read_project(spec).tasks] == [1, 0]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefz"), max_size=3), max_size=6))
def test_order_of_any_tasks_is_right_or_refused(depends_on: dict[str, Any]) -> None:
    try:
        order = rules.dependency_order(depends_on)
    except SilasError as refused:
        order = (refused.code,)
    assert order in (("plan_dependency_missing",), ("plan_dependency_cycle",)) or _works(order, depends_on)


def _works(order: tuple[str, ...], depends_on: dict[str, Any]) -> bool:
    everyone = sorted(order) == sorted(depends_on)
    return everyone and all(order.index(first) < order.index(name) for name in order for first in depends_on[name])
