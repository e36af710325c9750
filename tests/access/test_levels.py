"""Levels as rows: do they hold from the next message on, and does the form refuse what would open the wrong door?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client

from apps.access.models import AccessLevel
from apps.gates.services import save_gate
from apps.sessions import policy
from apps.tenants.models import Deployment
from apps.work import services as work
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.identity import GATE, GOAL, MARIA, VERIFY, converse
from tests.factories.sessions import make_session
from tests.factories.signed import make_site
from tests.factories.skills import install, make_folder, read_tool, save_record
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import browser_of, page_of

BARE_GOAL = GOAL[: GOAL.index("access_levels:")] + GOAL[GOAL.index("escalation:") :]


@pytest.fixture
def keeper(owner: Any) -> Client:
    return browser_of(owner)


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Deployment:
    """A goal with skills and no levels of its own, and the gate that knows Maria."""
    install(tenant, make_folder(tmp_path, tools=[read_tool()], files={"guards/verify_customer.py": VERIFY}))
    save_record(tenant, "customers", "C-1", subject="C-1", name="Maria Ortega", born="1984-03-12")
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        save_gate(GATE, deployment_id=deployment.pk)
    _govern(deployment, BARE_GOAL)
    return deployment


def _govern(deployment: Deployment, goal: str) -> None:
    with tenant_scope(deployment.tenant_id):
        row = work.adopt_goal(goal, deployment_id=deployment.pk, requested_by="user:test")
        deployment.active_goal_id = row.pk
        deployment.save(update_fields=["active_goal_id"])


def _level(deployment: Deployment, name: str = "verified", **fields: Any) -> AccessLevel:
    given = {"order": 1, "tools": ["look"], "requires": ["identity_verified"], "expires_after": 900}
    with tenant_scope(deployment.tenant_id):
        row: AccessLevel = AccessLevel.objects.create(deployment=deployment, name=name, **{**given, **fields})
    return row


def _levels(deployment: Deployment) -> dict[str, list[str]]:
    with tenant_scope(deployment.tenant_id):
        return {name: list(level.tools) for name, level in policy.load(deployment).levels.items()}


async def test_level_of_a_row_is_reached_by_its_gate(desk: Deployment) -> None:
    await in_thread(_level, desk)
    assert (await converse(await in_thread(make_session, desk), MARIA)).level == "verified"


def test_levels_stand_in_their_order_with_public_first(desk: Deployment) -> None:
    _level(desk, "high", order=1)
    _level(desk, "public", order=7, tools=[], requires=[], expires_after=None)
    _level(desk, "low", order=0)
    assert list(_levels(desk)) == ["public", "low", "high"]


def test_deployment_without_a_row_for_public_has_it_all_the_same(desk: Deployment) -> None:
    _level(desk)
    assert _levels(desk)["public"] == ["knowledge_search"]


def test_levels_of_the_goal_win(desk: Deployment) -> None:
    _level(desk, "other")
    _govern(desk, GOAL)
    assert list(_levels(desk)) == ["public", "verified"]


def test_levels_of_another_deployment_are_not_read(desk: Deployment, tenant: Any) -> None:
    _level(make_deployment(tenant))
    assert list(_levels(desk)) == ["public"]


async def test_level_that_was_taken_out_is_lost_with_the_next_message(desk: Deployment) -> None:
    row = await in_thread(_level, desk)
    await in_thread(partial(_level, desk, "trusted", order=2, requires=["identity_verified", "factor"]))
    session = await converse(await in_thread(make_session, desk), MARIA)
    await in_thread(_delete, row)
    assert (await converse(session, "Hello")).level == "public"


async def test_level_that_became_stricter_is_lost_with_the_next_message(desk: Deployment) -> None:
    row = await in_thread(_level, desk)
    session = await converse(await in_thread(make_session, desk), MARIA)
    await in_thread(_change, row, requires=["identity_verified", "factor"])
    assert (await converse(session, "Hello")).level == "public"


@pytest.mark.parametrize(
    "broken",
    [
        {"tools": "look"},
        {"tools": [1]},
        {"tools": {"look": 1}},
        {"requires": "identity_verified"},
        {"requires": [None]},
    ],
)
def test_row_that_is_no_level_opens_nothing(desk: Deployment, broken: dict[str, Any]) -> None:
    _level(desk, **broken)
    assert list(_levels(desk)) == ["public"]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("verified", {"requires": []}),
        ("public", {"requires": ["identity_verified"], "expires_after": None}),
        ("public", {"requires": [], "expires_after": 60}),
        ("verified", {"expires_after": 0}),
    ],
)
def test_database_keeps_no_level_that_is_not_earned(desk: Deployment, name: str, fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError):
        _level(desk, name, **fields)


# -- the form ----------------------------------------------------------------------------------------------------------


def _add(client: Client, deployment: Deployment, **fields: Any) -> str:
    given = {
        "deployment": deployment.pk,
        "name": "verified",
        "order": 1,
        "description": "",
        "tools": "look",
        "requires": "identity_verified",
        "expires_after": 900,
    }
    return client.post(page_of(AccessLevel, "add"), {**given, **fields}).content.decode()


def test_owner_adds_a_level(keeper: Client, desk: Deployment) -> None:
    _add(keeper, desk)
    assert _levels(desk)["verified"] == ["look"]


def test_level_may_ask_for_a_gate_that_a_sites_key_passes(keeper: Client, desk: Deployment) -> None:
    make_site(desk, gate="signed_in")
    _add(keeper, desk, requires="signed_in")
    assert "verified" in _levels(desk)


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": "launch_rockets"},
        {"tools": "look\nlaunch_rockets"},
        {"tools": '["look"]'},
        {"requires": "no_such_gate"},
        {"requires": ""},
        {"name": "public"},
        {"name": "public", "requires": ""},
        {"name": "a level"},
        {"expires_after": 0},
        {"expires_after": -5},
        {"order": -1},
    ],
)
def test_level_that_makes_no_sense_is_refused(keeper: Client, desk: Deployment, fields: dict[str, Any]) -> None:
    assert "errorlist" in _add(keeper, desk, **fields)
    assert list(_levels(desk)) == ["public"]


def test_refusal_names_what_there_is(keeper: Client, desk: Deployment) -> None:
    assert "Available: knowledge_search, look." in _add(keeper, desk, tools="launch_rockets")


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_others_add_no_level(tenant: Any, desk: Deployment, role: str) -> None:
    _add(browser_of(make_member(tenant, role)), desk)
    assert list(_levels(desk)) == ["public"]


def test_owner_of_another_tenant_adds_no_level(other_tenant: Any, desk: Deployment) -> None:
    _add(browser_of(make_member(other_tenant, "owner")), desk)
    assert list(_levels(desk)) == ["public"]


def _delete(row: AccessLevel) -> None:
    with tenant_scope(row.tenant_id):
        row.delete()


def _change(row: AccessLevel, **fields: Any) -> None:
    with tenant_scope(row.tenant_id):
        for name, value in fields.items():
            setattr(row, name, value)
        row.save()
