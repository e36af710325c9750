"""Accepted tools together with a skill's: in a goal's list, at a level, on a card, in an approved plan."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.connections.services.requests import _connection_skill as connection_skill
from apps.gates.schemas import AccessLevel
from apps.guard.enums import Intent
from apps.guard.schemas import Done, Refused
from apps.sessions.policy import with_outside
from apps.skills import queries as skills
from apps.toolservers import services
from apps.toolservers.models import OutsideTool, ToolServer, ToolSet
from apps.work.schemas import WorkItemSpec
from apps.work.services.approval_requests import RequestedCall, card_text_of
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests.factories.skills import install, make_folder, read_tool
from tests.fakes.tool_server import LOOK
from tests.toolservers.conftest import ACTS, READS


def tools(desk, *refs):
    with tenant_scope(desk.tenant):
        return {tool.name: tool for tool in skills.tools_for(refs or ("mcp:crm",))}


def test_only_accepted_tools_are_offered(desk):
    desk.listed().accept("look-up")
    assert list(tools(desk)) == ["crm_look_up"]


def test_offered_tool_carries_its_intent_and_price(desk):
    desk.listed().accept("look-up")
    found = tools(desk)["crm_look_up"]
    assert found.via == Intent.CALL_MCP_TOOL
    assert found.estimate == Decimal("0.02")
    assert found.args["additionalProperties"] is False


def test_pinned_reference_names_what_was_in_use_then(desk):
    desk.listed().accept("look-up")
    with tenant_scope(desk.tenant):
        then = skills.pin(["mcp:crm"])
    desk.accept("refund", ACTS)
    assert list(tools(desk, *then)) == ["crm_look_up"]
    assert len(tools(desk)) == 2


def test_pinned_reference_loses_what_is_suspended(desk):
    desk.listed().accept("look-up")
    refs = desk.refs
    with tenant_scope(desk.tenant):
        services.suspend_tool(desk.tool("look-up").pk, actor="user:1")
    assert tools(desk, *refs) == {}


def test_pinned_reference_does_not_find_a_tool_that_was_accepted_anew_with_other_words(desk):
    desk.listed().accept("look-up")
    refs = desk.refs
    desk.fake.tools[0] = LOOK.model_copy(update={"description": "Something else."})
    desk.listed().accept("look-up")
    assert tools(desk, *refs) == {}
    assert list(tools(desk)) == ["crm_look_up"]


@pytest.mark.parametrize("ref", ["mcp:crm", "mcp:nobody", "mcp:crm@0123456789abcdef"])
def test_reference_to_nothing_in_use_cannot_be_pinned(desk, ref):
    with tenant_scope(desk.tenant), pytest.raises(SilasError, match="no active tool") as refused:
        skills.pin([ref])
    assert refused.value.code == "skill_missing"


def test_skills_tool_keeps_its_name_before_an_outside_one(desk, tmp_path):
    install(desk.tenant, make_folder(tmp_path, tools=[read_tool(name="crm_look_up")]))
    desk.listed().accept("look-up")
    assert tools(desk, "mcp:crm", "test-desk")["crm_look_up"].via is Intent.RUN_SKILL


def test_level_gives_a_tool_to_itself_and_to_those_above(desk):
    desk.listed().accept("look-up", replace(READS, level="known"))
    levels = {name: AccessLevel(tools=["knowledge_search"]) for name in ("public", "known", "verified")}
    found = with_outside(levels, tools(desk).values())
    assert [name for name, level in found.items() if "crm_look_up" in level.tools] == ["known", "verified"]


def test_level_that_is_not_there_gives_a_tool_to_nobody(desk):
    desk.listed().accept("look-up", replace(READS, level="vip"))
    levels = {"public": AccessLevel(tools=[])}
    assert with_outside(levels, tools(desk).values()) == levels


@pytest.mark.parametrize(("level", "expected"), [("public", Refused), ("known", Done), ("verified", Done)])
def test_guard_refuses_a_tool_above_the_level(desk, level, expected):
    desk.listed().accept("look-up", replace(READS, level="known"))
    bare = {name: AccessLevel(tools=["knowledge_search"]) for name in ("public", "known", "verified")}
    levels = with_outside(bare, tools(desk).values())
    assert isinstance(desk.call("crm_look_up", access=frozenset(levels[level].tools)), expected)


@pytest.mark.parametrize(("ref", "reads"), [("test-desk", False), ("mcp:crm", True)])
def test_skills_alone_read_nothing_of_outside_servers(desk, tmp_path, ref, reads):
    install(desk.tenant, make_folder(tmp_path, tools=[read_tool()]))
    desk.listed().accept("look-up")
    with tenant_scope(desk.tenant), CaptureQueriesContext(connection) as asked:
        assert len(skills.tools_for([ref])) == 1
    tables = [model._meta.db_table for model in (ToolServer, OutsideTool, ToolSet)]
    assert any(table in query["sql"] for query in asked for table in tables) is reads


@pytest.mark.parametrize("name", ["knowledge", "deliver-chain", "goal"])
def test_no_server_is_called_as_tools_of_the_house_begin(desk, name):
    with tenant_scope(desk.tenant), pytest.raises(SilasError) as refused:
        services.add_server(name, url=desk.fake.url, actor="user:1")
    assert refused.value.code == "tool_server_name"


def test_outside_server_connects_no_account(desk):
    desk.listed().accept("look-up")
    with tenant_scope(desk.tenant), pytest.raises(SilasError) as refused:
        connection_skill("mcp:crm")
    assert refused.value.code == "not_a_connection"


def test_card_says_who_acts_and_that_nobody_here_can_prove_it(desk):
    desk.listed().accept("refund", ACTS)
    spec = WorkItemSpec(id="w", type="task", title="Refund", skills=["mcp:crm"], verify=[], body="Refund A-1.")
    wanted = [RequestedCall(PlannedCall(tool="crm_refund", args={"order": "A-1"}), tools(desk)["crm_refund"])]
    with tenant_scope(desk.tenant):
        text = card_text_of(wanted, spec, "", None)
    said = {fact.label: fact.text for fact in text.facts}
    host = said["Runs"].removeprefix("By crm at ").partition(",")[0]
    assert said["Done by"] == "crm, an outside tool server"
    assert said["order"] == "A-1"
    assert said["Runs"] == f"By crm at {host}, outside of our sandbox, with the key that your company gave it"
    assert said["Risk rating"] == "High risk when your company accepted this tool"
    assert said["Checked for conflicts"] == "No. It changes data at another service, which cannot be compared first."
    assert said["Verified by"] == "nothing but the answer of crm, so the result is not verified"
    assert said["Can be undone"] == "No"
    assert len(said) == 7
