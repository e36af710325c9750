"""Tool servers that are programs of a skill, in the sandbox: honest and hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.urls import reverse

from apps.guard.schemas import Done
from apps.skills.enums import SkillStatus
from apps.skills.models import SkillVersion
from apps.toolservers import client, services
from apps.toolservers.models import ToolServer
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.skills import install, make_folder
from tests.fakes import program_server
from tests.toolservers.conftest import ACTS, SECRET, Desk

SCRIPT = "scripts/server.py"
PLACE = "orders.example.org"


@pytest.fixture
def skill(tenant: Any, tmp_path: Path) -> SkillVersion:
    source = Path(program_server.__file__ or "").read_text()
    front = {"requirements": {"network": [PLACE]}}
    return install(tenant, make_folder(tmp_path, tools=[], files={SCRIPT: source}, **front))


@pytest.fixture
def program(tenant: Any, skill: SkillVersion) -> Callable[..., Desk]:
    def begun(*args: str, **more: Any) -> Desk:
        with tenant_scope(tenant):
            row = services.add_program("crm", skill="test-desk", script=SCRIPT, args=args, actor="user:1", **more)
        return Desk(tenant, SimpleNamespace(), row)  # type: ignore[arg-type]

    return begun


def said(desk: Desk) -> str:
    desk.listed().accept("look-up")
    outcome = desk.call("crm_look_up")
    assert isinstance(outcome, Done), outcome
    return str(outcome.value["text"])


def why_not_listed(desk: Desk) -> str:
    with pytest.raises(SilasError) as refused:
        desk.listed()
    assert refused.value.code == "tool_server_unreachable"
    with tenant_scope(desk.tenant):
        return str(ToolServer.objects.get(pk=desk.server.pk).failure)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("honest", "A-1 is on its way"),
        ("samples", "refused"),
        ("roots", "refused"),
        ("reads", "nothing nothing"),
        ("calls", "nothing"),
        ("stays", "here"),
    ],
)
def test_program_answers_and_gets_nothing_beside_its_files(program: Any, mode: str, text: str) -> None:
    assert said(program(mode)) == text


@pytest.mark.parametrize(
    ("mode", "code"),
    [
        ("garbage", "no_mcp"),
        ("long", "answer_too_large"),
        ("flood", "answer_too_large"),
        ("exits", "program_ended"),
    ],
)
def test_program_that_keeps_no_protocol_is_stopped_and_named(program: Any, mode: str, code: str) -> None:
    assert why_not_listed(program(mode)) == code


def test_program_that_never_answers_is_waited_for_no_longer_than_a_list_may_take(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LIST_SECONDS", 1.0)
    assert why_not_listed(program("silent")) == "too_slow"


def test_program_that_dies_in_a_call_may_have_done_it(program: Any) -> None:
    desk = program("dies")
    desk.listed().accept("look-up", ACTS)
    outcome = desk.call("crm_look_up", acting=True)
    assert outcome.code == "program_ended"
    assert outcome.uncertain is True


def test_token_comes_by_a_descriptor(program: Any) -> None:
    assert said(program("token", secret=SECRET)) == f"{len(SECRET)} characters"


def test_program_that_says_its_token_is_not_heard(program: Any) -> None:
    desk = program("leaks", secret=SECRET)
    desk.listed().accept("look-up")
    assert desk.call("crm_look_up").code == "program_secret"


def test_program_of_a_skill_that_is_switched_off_does_not_run(program: Any, skill: SkillVersion) -> None:
    desk = program("honest")
    desk.listed().accept("look-up")
    refs = desk.refs
    with tenant_scope(desk.tenant):
        SkillVersion.objects.filter(pk=skill.pk).update(status=SkillStatus.DISABLED)
    assert desk.call("crm_look_up", skills=refs).code == "skill_missing"


def test_program_stays_the_one_that_was_approved(program: Any, skill: SkillVersion, tmp_path: Path) -> None:
    """Another version of the skill is in use since; the server runs the files that it was registered with."""
    desk = program("honest")
    install(desk.tenant, make_folder(tmp_path / "later", tools=[], files={SCRIPT: "print('something else')"}))
    assert said(desk) == "A-1 is on its way"


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"skill": "nobody"}, "skill_missing"),
        ({"script": "checks/done.py"}, "program_script"),
        ({"script": "scripts/../checks/done.py"}, "program_script"),
        ({"args": ["a\0b"]}, "program_args"),
        ({"args": ["a"] * 21}, "program_args"),
        ({"places": ["elsewhere.example.org:443"]}, "program_place"),
        ({"secret": "two words"}, "tool_server_secret"),
    ],
)
def test_program_that_was_not_approved_so_is_refused(
    tenant: Any, skill: SkillVersion, wrong: dict[str, Any], code: str
) -> None:
    given = {"skill": "test-desk", "script": SCRIPT, **wrong}
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        services.add_program("crm", **given, actor="user:1")
    assert refused.value.code == code


def test_program_reaches_approved_places_only_where_its_owner_listed_them(program: Any) -> None:
    desk = program("honest", places=[f"{PLACE}:443"])
    assert desk.server.egress == [f"{PLACE}:443"]
    assert desk.server.program.startswith("test-desk@")
    assert said(desk) == "A-1 is on its way"


def test_program_is_registered_over_http(tenant: Any, skill: SkillVersion, owner: Any) -> None:
    body = {"name": "crm", "skill": "test-desk", "script": SCRIPT, "args": ["honest"], "places": [f"{PLACE}:443"]}
    made = browser(owner).post("/api/v1/mcp-servers", body, content_type="application/json")
    shown = made.json()
    assert made.status_code == 201
    assert shown["transport"] == "stdio"
    assert shown["argv"] == [SCRIPT, "honest"]


@pytest.mark.parametrize("more", [{"url": "https://shop.example.org"}, {"script": ""}])
def test_server_is_either_an_address_or_a_program(
    tenant: Any, skill: SkillVersion, owner: Any, more: dict[str, str]
) -> None:
    body = {"name": "crm", "skill": "test-desk", "script": SCRIPT, **more}
    assert browser(owner).post("/api/v1/mcp-servers", body, content_type="application/json").status_code == 400


def test_owner_adds_a_program_at_the_console(tenant: Any, skill: SkillVersion, owner: Any) -> None:
    sent = {"name": "crm", "skill": "test-desk", "script": SCRIPT, "args": "honest", "places": ""}
    page = browser(owner).post(reverse("console-tool-program-new"), sent, follow=True).content.decode()
    assert "test-desk@" in page
    assert SCRIPT in page


def test_console_says_why_a_program_cannot_be(tenant: Any, skill: SkillVersion, owner: Any) -> None:
    sent = {"name": "crm", "skill": "test-desk", "script": "scripts/none.py"}
    answer = browser(owner).post(reverse("console-tool-program-new"), sent)
    assert answer.status_code == 422
    assert 'value="scripts/none.py"' in answer.content.decode()


def test_nobody_but_an_owner_adds_a_program(tenant: Any, skill: SkillVersion, approver: Any) -> None:
    sent = {"name": "crm", "skill": "test-desk", "script": SCRIPT}
    assert browser(approver).post(reverse("console-tool-program-new"), sent).status_code == 403
