"""A goal file that could never work is rejected with its code and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.approvals.models import Card
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.sessions import policy
from apps.tenants.models import Deployment
from apps.work import goal_rules, services
from apps.work.models import WorkItem
from apps.work.queries import active_goal
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder
from tests.factories.tenants import make_deployment
from tests.rivals import interrupted

GOAL = """---
id: support
type: goal
title: Look after customers
schedule: always_on
skills: [test-desk]
gates:
  - {name: nice, on: every_user_message, provider: custom, check: toxicity, on_block: human}
  - {name: known, on: every_user_message, type: approval_always, on_block: again}
access_levels:
  public: {tools: [knowledge_search]}
  verified: {tools: [knowledge_search, look], requires: [known], expires_after: 900}
escalation:
  human: {action: transfer_to_queue, queue: second_line}
  again: {action: respond, message: Please try again.}
  softly: {action: suppress_and_rephrase, instruction: Say it kindly., fallback: human}
---
Be kind.
"""


def refusal(changed: str) -> tuple[str, int]:
    with pytest.raises(SilasError) as refused:
        goal_rules.read_goal(changed, other_gates={})
    return refused.value.code, int(refused.value.extra["line"])


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        (("type: goal", "type: task"), "plan_not_a_goal", 3),
        (("name: known", "name: nice"), "goal_gate_twice", 9),
        (("requires: [known]", "requires: [unknown]"), "goal_gate_unknown", 12),
        (("name: known, on: every_user_message", "name: known, on: every_agent_response"), "goal_gate_unknown", 12),
        (("requires: [known], ", ""), "goal_level_order", 12),
        (("{tools: [knowledge_search]}", "{tools: [], requires: [known]}"), "goal_level_order", 11),
        (("  public:", "  anybody:"), "goal_level_order", 11),
        (("on_block: human", "on_block: humans"), "goal_escalation_unknown", 8),
        (("fallback: human", "fallback: humans"), "goal_escalation_unknown", 16),
        (("fallback: human", "fallback: softly"), "goal_escalation_circle", 16),
        ((", fallback: human", ""), "goal_fallback_missing", 16),
        (("queue: second_line", "message: Wait."), "goal_queue_missing", 14),
        (("queue: second_line", "queue: ' '"), "goal_queue_missing", 14),
        (("action: respond, message: Please try again.", "action: spawn_task"), "goal_instruction_missing", 15),
        (("action: respond", "action: shout"), "plan_field_invalid", 15),
        (("expires_after: 900", "expires_after: -1"), "plan_field_invalid", 12),
        (("provider: custom", "provider: magic"), "plan_field_invalid", 8),
        (("title: Look", "tilte: Look"), "plan_field_missing", 2),
        (("schedule: always_on", "scheduled: always_on"), "plan_field_unknown", 5),
        (("schedule: always_on", "schedule: *on"), "plan_front_matter_invalid", 5),
        (("---\nBe kind", "Be kind"), "plan_front_matter_unclosed", 1),
    ],
)
def test_goal_file_that_cannot_work_is_refused_with_its_line(change: tuple[str, str], code: str, line: int) -> None:
    assert change[0] in GOAL
    assert refusal(GOAL.replace(*change, 1)) == (code, line)


def test_fallbacks_that_lead_in_a_wider_circle_are_refused() -> None:
    changed = GOAL.replace(
        "human: {action: transfer_to_queue, queue: second_line}",
        "human: {action: transfer_to_queue, queue: second_line, fallback: softly}",
    )
    assert refusal(changed)[0] == "goal_escalation_circle"


def test_level_may_be_reached_by_a_gate_that_runs_there_already() -> None:
    changed = GOAL.replace("requires: [known]", "requires: [badge]")
    assert (
        goal_rules.read_goal(changed, other_gates={"badge": "every_user_message"}).spec.title == "Look after customers"
    )


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Deployment:
    install(tenant, make_folder(tmp_path))
    return make_deployment(tenant)


def put(desk: Deployment, markdown: str = GOAL) -> services.InstalledGoal:
    with tenant_scope(desk.tenant_id):
        return services.install_goal(markdown, deployment=desk, requested_by="user:test")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("skills: [test-desk]", "skills: [nowhere]"), "skill_missing"),
        (("knowledge_search, look", "knowledge_search, lock"), "goal_tool_unknown"),
        (("requires: [known]", "requires: [unknown]"), "goal_gate_unknown"),
    ],
)
def test_goal_that_is_refused_leaves_the_one_in_force(desk: Deployment, change: tuple[str, str], code: str) -> None:
    before = put(desk).goal.pk
    with pytest.raises(SilasError) as refused:
        put(desk, GOAL.replace(*change))
    with tenant_scope(desk.tenant_id):
        assert refused.value.code == code
        assert active_goal(desk).pk == before
        assert WorkItem.objects.count() == 1


def test_goal_with_more_gates_than_a_turn_may_ask_is_refused(desk: Deployment) -> None:
    with tenant_scope(desk.tenant_id):
        for number in range(20):
            save_gate(GateSpec(name=f"row{number}", on="every_user_message", type="approval_always"))
    many = "".join(
        f"  - {{name: g{number}, on: every_agent_response, type: approval_always}}\n" for number in range(11)
    )
    with pytest.raises(SilasError) as refused:
        put(desk, GOAL.replace("access_levels:", many + "access_levels:"))
    assert refused.value.code == "goal_too_many_gates"
    assert refused.value.extra["line"] == 8


def test_imported_goal_is_the_policy_of_the_next_turn(desk: Deployment) -> None:
    put(desk)
    with tenant_scope(desk.tenant_id):
        found = policy.load(desk)
    assert [gate.name for gate in found.gates] == ["nice", "known"]
    assert list(found.levels) == ["public", "verified"]


def test_gates_of_the_company_come_before_those_of_the_file(desk: Deployment) -> None:
    put(desk)
    with tenant_scope(desk.tenant_id):
        save_gate(GateSpec(name="house", on="every_user_message", type="approval_always"), deployment_id=desk.pk)
        assert [gate.name for gate in policy.load(desk).gates] == ["house", "nice", "known"]


def test_goal_imported_twice_changes_nothing(desk: Deployment) -> None:
    first, second = put(desk), put(desk)
    assert second.goal.pk == first.goal.pk
    assert second.changed is False


def test_goal_that_says_something_else_ends_the_one_before(desk: Deployment) -> None:
    first = put(desk).goal
    second = put(desk, GOAL.replace("second_line", "third_line")).goal
    with tenant_scope(desk.tenant_id):
        before = WorkItem.objects.get(pk=first.pk)
        assert before.status == "blocked"
        assert active_goal(desk).pk == second.pk


def test_of_two_files_imported_at_once_one_governs_and_the_other_is_over(desk: Deployment) -> None:
    def first(meet: Callable[[], None]) -> Any:
        with tenant_scope(desk.tenant_id):
            installed = services.install_goal(GOAL, deployment=desk, requested_by="user:test")
            meet()
        return installed.goal.pk

    def second() -> Any:
        with tenant_scope(desk.tenant_id):
            there = Deployment.objects.get(pk=desk.pk)
            changed = GOAL.replace("second_line", "third_line")
            return services.install_goal(changed, deployment=there, requested_by="user:test").goal.pk

    earlier, later = interrupted(first, second)
    with tenant_scope(desk.tenant_id):
        statuses = dict(WorkItem.objects.values_list("pk", "status"))
        governs = Deployment.objects.get(pk=desk.pk).active_goal_id
    assert governs == later
    assert statuses == {earlier: "blocked", later: "healthy"}


def test_goal_of_a_skill_that_has_changed_is_another_goal(desk: Deployment, tmp_path: Path) -> None:
    first = put(desk).goal.pk
    install(desk.tenant, make_folder(tmp_path, files={"scripts/look.py": 'print(\'{"say": "other"}\')'}))
    assert put(desk).goal.pk != first


def run(desk: Deployment, file: Path, *options: str) -> None:
    call_command("import_goal", str(file), "--tenant", desk.tenant.slug, "--deployment", desk.slug, *options)


def test_command_installs_the_file(desk: Deployment, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "goal.md").write_text(GOAL)
    run(desk, tmp_path / "goal.md")
    assert capsys.readouterr().out.endswith("gates=2 levels=2 escalations=3\n")


def test_command_that_only_checks_changes_nothing(desk: Deployment, tmp_path: Path) -> None:
    (tmp_path / "goal.md").write_text(GOAL)
    run(desk, tmp_path / "goal.md", "--check")
    with tenant_scope(desk.tenant_id):
        assert active_goal(desk) is None
        assert not Card.objects.exists()


def test_command_says_code_and_line_of_what_is_wrong(desk: Deployment, tmp_path: Path) -> None:
    (tmp_path / "goal.md").write_text(GOAL.replace("on_block: human", "on_block: humans"))
    with pytest.raises(CommandError, match=r"goal_escalation_unknown: Line 8:"):
        run(desk, tmp_path / "goal.md")


def test_command_does_not_find_the_deployment_of_another_company(
    desk: Deployment, other_tenant: Any, tmp_path: Path
) -> None:
    (tmp_path / "goal.md").write_text(GOAL)
    with pytest.raises(CommandError, match="There is no deployment"):
        call_command("import_goal", str(tmp_path / "goal.md"), "--tenant", other_tenant.slug, "--deployment", desk.slug)


@pytest.mark.parametrize("name", ["nowhere.md", "."])
def test_command_says_when_there_is_no_file(desk: Deployment, tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        run(desk, tmp_path / name)
