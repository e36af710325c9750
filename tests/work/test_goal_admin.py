"""An owner installs a goal in the admin and reads the same errors as from `import_goal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.tenants.models import Deployment
from apps.work.models import GoalFile, WorkItem
from apps.work.queries import active_goal
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import browser_of, page_of
from tests.work.test_goal_files import GOAL

ADD = page_of(GoalFile, "add")


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Deployment:
    install(tenant, make_folder(tmp_path))
    return make_deployment(tenant)


def put(user: Any, desk: Deployment, **fields: Any) -> str:
    return browser_of(user).post(ADD, {"deployment": desk.pk, **fields}, follow=True).content.decode()


def in_force(desk: Deployment) -> str | None:
    with tenant_scope(desk.tenant_id):
        goal = active_goal(Deployment.objects.get(pk=desk.pk))
        return goal.title if goal else None


def test_pasted_goal_governs_the_deployment(desk: Deployment, owner: Any) -> None:
    put(owner, desk, markdown=GOAL.replace("\n", "\r\n"))
    assert in_force(desk) == "Look after customers"


def test_uploaded_goal_governs_the_deployment(desk: Deployment, owner: Any) -> None:
    put(owner, desk, file=SimpleUploadedFile("goal.md", GOAL.encode()))
    assert in_force(desk) == "Look after customers"


def test_goal_that_is_in_force_already_changes_nothing(desk: Deployment, owner: Any) -> None:
    put(owner, desk, markdown=GOAL)
    assert "already active" in put(owner, desk, markdown=GOAL)
    with tenant_scope(desk.tenant_id):
        assert WorkItem.objects.count() == 1


def test_what_is_wrong_is_told_with_its_code_and_line(desk: Deployment, owner: Any) -> None:
    page = put(owner, desk, markdown=GOAL.replace("requires: [known]", "requires: [unknown]"))
    assert "goal_gate_unknown: Line 12" in page
    assert in_force(desk) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "goal_missing"),
        ({"markdown": "   "}, "goal_missing"),
        ({"markdown": "'; touch pwned; #"}, "plan_front_matter_missing"),
        ({"file": b"\xff\xfe\x00"}, "goal_no_text"),
        ({"file": b"x" * (256 * 1024 + 1)}, "goal_too_long"),
    ],
)
def test_file_that_is_no_goal_is_refused(desk: Deployment, owner: Any, fields: dict[str, Any], code: str) -> None:
    given = {name: SimpleUploadedFile("g", value) if name == "file" else value for name, value in fields.items()}
    assert code in put(owner, desk, **given)
    assert in_force(desk) is None


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_nobody_but_an_owner_puts_a_goal_in_force(desk: Deployment, role: str) -> None:
    put(make_member(desk.tenant, role), desk, markdown=GOAL)
    assert in_force(desk) is None


def test_owner_of_another_company_puts_nothing_in_force_here(desk: Deployment, other_tenant: Any) -> None:
    put(make_member(other_tenant, "owner"), desk, markdown=GOAL)
    assert in_force(desk) is None
