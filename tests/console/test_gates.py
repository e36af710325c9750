"""Who sees the gates, who changes them, and what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.gates.models import Gate
from apps.gates.queries import active_gates, versions_of
from apps.gates.schemas import GateSpec
from apps.gates.services import retire, save_gate, write_version
from apps.gates.template_forms import TEMPLATES, template_of
from apps.work.models import WorkItem
from apps.work.services import install_goal
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.skills import install, make_folder, read_tool
from tests.factories.tenants import make_deployment, make_member
from tests.gates.conftest import STAND_IN
from tests.gates.test_rows import spec

PAGES = ["console-gates", "console-gate", "console-gate-edit", "console-gate-compare"]
PRESSES = ["console-gate-activate", "console-gate-roll-back", "console-gate-retire", "console-gate-try"]
FILLED = {"on": "every_user_message", "order": 100, "on_block": "report", "do": "save"}

GOAL = """---
id: support
type: goal
title: Look after customers
schedule: always_on
gates:
  - {name: NAME, on: every_user_message, type: regex, config: {pattern: refund}, on_block: person}
access_levels:
  public: {tools: [knowledge_search]}
escalation:
  person: {action: respond, message: "Please ask a person."}
---
Be kind.
"""


@pytest.fixture
def tools(tenant: Any, tmp_path: Path) -> None:
    install(tenant, make_folder(tmp_path, tools=[read_tool(name="refund"), read_tool(name="pay_out")]))


def governed_by(tenant: Any, name: str, *, said: str = "Please ask a person.") -> WorkItem:
    """The goal, with one gate of this name, that governs a deployment of its own."""
    markdown = GOAL.replace("NAME", name).replace("Please ask a person.", said)
    with tenant_scope(tenant):
        place = make_deployment(tenant)
        return install_goal(markdown, deployment=place, requested_by="user:test").goal


@pytest.fixture
def gate(tenant: Any, deployment: Any) -> Gate:
    """Version 1 active, version 2 a draft."""
    with tenant_scope(tenant):
        saved = save_gate(spec("words"), deployment_id=deployment.pk, note="The first")
        write_version(spec("words", config={"pattern": "refund"}), deployment_id=deployment.pk, note="Stricter")
        return Gate.objects.get(pk=saved.pk)


def address(name: str, gate_id: Any) -> str:
    plain = name == "console-gates"
    query = "?before=1&after=2" if name == "console-gate-compare" else ""
    return reverse(name, args=[] if plain else [gate_id]) + query


def seen(user: Any, name: str, gate: Gate) -> str:
    return str(browser(user).get(address(name, gate.pk)).content.decode())


def press(user: Any, name: str, gate: Gate, **data: Any) -> Any:
    return browser(user).post(address(name, gate.pk), {"version": 2, **data})


def filled(**fields: Any) -> dict[str, Any]:
    return {**FILLED, "pattern": "x", "seen": 2, **fields}


def template(user: Any, key: str, **fields: Any) -> Any:
    return browser(user).post(
        reverse("console-gate-template", args=[key]), {**FILLED, "name": "fresh", "seen": 0, **fields}
    )


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_for_owners_only(gate: Gate, name: str, role: str, request: pytest.FixtureRequest) -> None:
    assert browser(request.getfixturevalue(role)).get(address(name, gate.pk)).status_code == 403


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", [*PRESSES, "console-gate-edit"])
def test_press_is_for_owners_only(gate: Gate, name: str, role: str, request: pytest.FixtureRequest) -> None:
    assert press(request.getfixturevalue(role), name, gate).status_code == 403


@pytest.mark.parametrize("name", [*PRESSES, "console-gate-edit"])
def test_press_on_another_tenants_gate_is_not_found(gate: Gate, other_tenant: Any, name: str) -> None:
    assert press(make_member(other_tenant, "owner"), name, gate).status_code == 404


@pytest.mark.parametrize("name", PAGES[2:])
def test_page_of_another_tenants_gate_is_not_found(gate: Gate, other_tenant: Any, name: str) -> None:
    assert browser(make_member(other_tenant, "owner")).get(address(name, gate.pk)).status_code == 404


@pytest.mark.parametrize("name", PRESSES)
def test_unknown_gate_is_not_found(owner: Any, name: str) -> None:
    assert browser(owner).post(address(name, uuid4()), {"version": 1}).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_page_without_login_leads_to_it(gate: Gate, name: str) -> None:
    assert browser().get(address(name, gate.pk)).status_code == 302


@pytest.mark.parametrize("name", PRESSES)
def test_press_by_get_is_not_allowed(owner: Any, gate: Gate, name: str) -> None:
    assert browser(owner).get(address(name, gate.pk)).status_code == 405


@pytest.mark.parametrize("name", [*PRESSES, "console-gate-edit"])
def test_press_without_csrf_token_is_refused(owner: Any, gate: Gate, name: str) -> None:
    assert browser(owner, csrf=True).post(address(name, gate.pk), {"version": 2}).status_code == 403


@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_inline_script_or_style(owner: Any, gate: Gate, name: str) -> None:
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", seen(owner, name, gate))


@pytest.mark.parametrize("number", ["", "0", "99", "-1", "x", "²", "9" * 30])
@pytest.mark.parametrize("name", ["console-gate-activate", "console-gate-roll-back", "console-gate-try"])
def test_version_that_does_not_exist_is_not_found(owner: Any, gate: Gate, name: str, number: str) -> None:
    assert press(owner, name, gate, version=number).status_code == 404


def test_list_says_what_is_in_force_and_what_is_a_draft(owner: Any, gate: Gate) -> None:
    page = seen(owner, "console-gates", gate)
    assert "version 1" in page
    assert "draft 2" in page


def test_list_shows_nothing_of_another_tenant(gate: Gate, other_tenant: Any) -> None:
    assert ">words<" not in seen(make_member(other_tenant, "owner"), "console-gates", gate)


def test_gates_that_block_because_a_library_is_missing_are_named(
    tenant: Any, owner: Any, gate: Gate, settings: Any, tmp_path: Any
) -> None:
    settings.GUARDRAILS_DIR = STAND_IN
    judged = GateSpec(name="by_a_library", on="every_user_message", provider="guardrails_ai", check="pii")
    with tenant_scope(tenant):
        save_gate(judged, deployment_id=gate.deployment_id)
    assert "gates-halted" not in seen(owner, "console-gates", gate)
    settings.GUARDRAILS_DIR = tmp_path
    page = seen(owner, "console-gates", gate)
    assert "so by_a_library blocks everything it checks" in page


def test_list_shows_the_gates_of_the_goal_that_governs_a_deployment(tenant: Any, owner: Any) -> None:
    goal = governed_by(tenant, "refund_words")
    page = str(browser(owner).get(reverse("console-gates")).content.decode())
    assert "refund_words" in page
    assert "Please ask a person." in page
    assert reverse("console-work-item", args=[goal.pk]) in page
    assert "No gates yet" not in page


def test_list_shows_no_gate_of_a_goal_that_governs_nothing_any_more(tenant: Any, owner: Any) -> None:
    goal = governed_by(tenant, "refund_words")
    with tenant_scope(tenant):
        place = WorkItem.objects.get(pk=goal.pk).deployment
        assert place is not None
        install_goal(GOAL.replace("NAME", "newer_words"), deployment=place, requested_by="user:test")
    page = str(browser(owner).get(reverse("console-gates")).content.decode())
    assert "refund_words" not in page
    assert "newer_words" in page


def test_list_shows_no_gate_of_another_tenants_goal(owner: Any, other_tenant: Any) -> None:
    governed_by(other_tenant, "refund_words")
    assert "refund_words" not in str(browser(owner).get(reverse("console-gates")).content.decode())


def test_hostile_words_in_a_goals_gate_are_shown_as_words(tenant: Any, owner: Any) -> None:
    governed_by(tenant, "words", said="<img src=x>")
    page = str(browser(owner).get(reverse("console-gates")).content.decode())
    assert "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


def test_gate_says_who_wrote_each_version_and_why(owner: Any, gate: Gate) -> None:
    page = seen(owner, "console-gate", gate)
    assert "The first" in page
    assert "Stricter" in page
    assert "The platform" in page


def test_gate_shows_what_the_draft_would_change(owner: Any, gate: Gate) -> None:
    assert "<del>.</del><ins>refund</ins>" in seen(owner, "console-gate", gate)


def test_hostile_words_in_a_gate_are_shown_as_words(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        gate = save_gate(spec("words", config={"pattern": "<script>x"}), note="<img src=x>")
    page = seen(owner, "console-gate", gate)
    assert "<script>x" not in page
    assert "<img src=x>" not in page
    assert "&lt;script&gt;x" in page


def test_draft_is_put_in_force_by_its_button(tenant: Any, owner: Any, gate: Gate, deployment: Any) -> None:
    press(owner, "console-gate-activate", gate)
    with tenant_scope(tenant):
        assert active_gates(deployment.pk).value[0].config == {"pattern": "refund"}


def test_roll_back_brings_the_old_words_back(tenant: Any, owner: Any, gate: Gate, deployment: Any) -> None:
    press(owner, "console-gate-activate", gate)
    press(owner, "console-gate-roll-back", gate, version=1)
    with tenant_scope(tenant):
        assert active_gates(deployment.pk).value[0].config == {"pattern": "."}
        assert [one.restores for one in versions_of(gate)] == [1, None, None]


def test_retired_gate_says_what_it_said_last(tenant: Any, owner: Any, gate: Gate) -> None:
    press(owner, "console-gate-retire", gate)
    assert "Deactivated: last version" in seen(owner, "console-gate", gate)


def test_edit_begins_with_the_newest_version(owner: Any, gate: Gate) -> None:
    assert "refund" in seen(owner, "console-gate-edit", gate)


def test_edit_writes_a_version_by_the_person_who_pressed(tenant: Any, owner: Any, gate: Gate) -> None:
    browser(owner).post(address("console-gate-edit", gate.pk), filled(note="Softer"))
    with tenant_scope(tenant):
        newest = versions_of(gate)[0]
        assert newest.number == 3
        assert newest.written_by == f"user:{owner.pk}"
        assert newest.note == "Softer"


def test_edit_that_missed_a_version_stores_nothing_and_keeps_what_was_written(
    tenant: Any, owner: Any, gate: Gate
) -> None:
    answer = browser(owner).post(address("console-gate-edit", gate.pk), filled(pattern="mine", seen=1))
    with tenant_scope(tenant):
        assert answer.status_code == 422
        assert len(versions_of(gate)) == 2
    assert "mine" in answer.content.decode()
    assert "This gate was changed in the meantime" in answer.content.decode()


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": "("},
        {"pattern": ""},
        {"pattern": "(((a{50}){50}){50}){50}"},
        {"on": "whenever"},
        {"on": "on_tool_call"},
        {"on_block": "somebody"},
    ],
)
def test_gate_that_would_not_work_is_refused_beside_the_field(
    tenant: Any, owner: Any, gate: Gate, fields: dict[str, Any]
) -> None:
    answer = browser(owner).post(address("console-gate-edit", gate.pk), filled(**fields))
    with tenant_scope(tenant):
        assert answer.status_code == 422
        assert len(versions_of(gate)) == 2
    assert 'class="problem"' in answer.content.decode()


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("limit", {"tools": "refund", "extract": "amount", "allowed": "9", "approval": "1"}),
        ("limit", {"tools": "refund", "extract": "amount", "allowed": "nan"}),
        ("limit", {"tools": " , ", "extract": "amount", "allowed": "9"}),
        ("approval", {"tools": ""}),
        ("approval", {"tools": "refnd"}),
        ("words", {"words": " \n "}),
        ("words", {"words": "x" * 81}),
        ("topics", {"topics": ["weather"]}),
        ("personal-data", {"entities": []}),
        ("attacks", {"check": "nobody"}),
        ("model", {"policy": " "}),
    ],
)
def test_template_that_would_not_work_is_refused_beside_the_field(
    tenant: Any, owner: Any, key: str, fields: dict[str, Any]
) -> None:
    answer = template(owner, key, **fields)
    assert answer.status_code == 422
    assert 'class="problem"' in answer.content.decode()
    with tenant_scope(tenant):
        assert not Gate.objects.exists()


TEMPLATE_FIELDS: dict[str, dict[str, Any]] = {
    "limit": {"tools": "refund, pay_out", "extract": "amount", "allowed": "50", "approval": "500"},
    "approval": {"tools": "refund"},
    "words": {"words": "Acme\nGlobex Corp"},
    "personal-data": {"entities": ["EMAIL", "IBAN"], "removes": "on"},
    "topics": {"topics": ["legal"]},
    "links": {"hosts": "shop.test"},
    "attacks": {"check": "toxicity"},
    "length": {"most": "300"},
    "pattern": {"pattern": " x"},
    "model": {"policy": "Be friendly.", "promote_to_policy": "on"},
}


def test_every_template_has_fields_to_test() -> None:
    assert set(TEMPLATE_FIELDS) == set(TEMPLATES)


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("key", TEMPLATES)
def test_gate_is_edited_with_the_template_that_wrote_it(tenant: Any, owner: Any, key: str) -> None:
    template(owner, key, **TEMPLATE_FIELDS[key], do="activate")
    with tenant_scope(tenant):
        written = Gate.objects.get(name="fresh")
        assert written.active == 1
        found = template_of(versions_of(written)[0])
    assert found is not None
    assert found[0].key == key
    page = browser(owner).get(address("console-gate-edit", written.pk))
    assert page.status_code == 200
    assert "Fill in the fields" not in page.content.decode()


def test_gate_that_no_template_shows_leads_to_the_administration_and_is_not_written(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        odd = save_gate(spec("odd", config={"pattern": "x", "min_chars": 3}))
    page = browser(owner).get(address("console-gate-edit", odd.pk)).content.decode()
    assert reverse("admin:gates_gate_change", args=[odd.pk]) in page
    assert browser(owner).post(address("console-gate-edit", odd.pk), filled(seen=1)).status_code == 409
    with tenant_scope(tenant):
        assert len(versions_of(odd)) == 1


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize(
    ("key", "sample", "said"),
    [
        ("limit", "20", "Passes"),
        ("limit", "200", "Needs approval"),
        ("limit", "2000", "Blocked"),
        ("limit", "many", "Blocked"),
        ("words", "Is acme cheaper?", "Blocked"),
        ("words", "Acmeville", "Passes"),
        ("personal-data", "Write to ada@example.com", "Passes"),
        ("links", "See https://evil.test/", "Blocked"),
        ("links", "See https://www.shop.test/", "Passes"),
    ],
)
def test_typed_text_is_tried_and_nothing_is_saved(tenant: Any, owner: Any, key: str, sample: str, said: str) -> None:
    page = template(owner, key, **TEMPLATE_FIELDS[key], do="try", sample=sample).content.decode()
    tried = page[page.index('id="tried"') :]
    assert f"<b>{said}</b>" in tried
    assert "ada@example.com" not in tried
    with tenant_scope(tenant):
        assert not Gate.objects.exists()


def test_hostile_sample_and_fields_are_shown_as_words(owner: Any) -> None:
    page = template(owner, "words", words="<img src=x>", sample="<script>alert(1)</script>", do="try")
    assert "<img src=x>" not in page.content.decode()
    assert "<script>alert" not in page.content.decode()


@pytest.mark.usefixtures("tools")
def test_new_gate_of_a_known_name_is_refused(tenant: Any, owner: Any) -> None:
    template(owner, "approval", tools="refund")
    answer = template(owner, "approval", tools="pay_out", do="activate")
    assert answer.status_code == 422
    with tenant_scope(tenant):
        assert Gate.objects.get().active is None


@pytest.mark.usefixtures("tools")
def test_gate_names_only_tools_that_there_are(tenant: Any, owner: Any) -> None:
    form = browser(owner).get(reverse("console-gate-template", args=["limit"])).content.decode()
    assert "Available: memory_op, pay_out, refund, web_search" in form
    assert '<option value="pay_out">' in form
    refused = template(owner, "approval", tools="refund, refnd, x<y", do="activate")
    assert refused.status_code == 422
    assert "There are no tools named refnd, x&lt;y." in refused.content.decode()
    with tenant_scope(tenant):
        assert not Gate.objects.exists()


def test_tool_that_is_gone_stays_in_its_gate(tenant: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        old = save_gate(GateSpec(name="old", on="on_tool_call", type="approval_always", config={"tools": ["gone"]}))
    edited = browser(owner).post(
        address("console-gate-edit", old.pk), {**FILLED, "tools": "gone", "note": "Later", "seen": 1, "order": 200}
    )
    assert edited.status_code == 302
    with tenant_scope(tenant):
        assert len(versions_of(old)) == 2


def test_draft_is_saved_and_tested_with_one_press(tenant: Any, owner: Any) -> None:
    place = make_deployment(tenant)
    tested = template(owner, "words", words="refund", deployment=str(place.pk), do="test")
    assert tested.status_code == 200
    assert "Activate version 1" in tested.content.decode()
    with tenant_scope(tenant):
        assert Gate.objects.get(name="fresh").active is None


def test_templates_are_on_the_page_of_all_gates(owner: Any) -> None:
    found = browser(owner).get(reverse("console-gates")).content.decode()
    for key in TEMPLATES:
        assert f'href="{reverse("console-gate-template", args=[key])}"' in found


def test_template_that_does_not_exist_is_not_found(owner: Any) -> None:
    assert browser(owner).get(reverse("console-gate-template", args=["nothing"])).status_code == 404


def test_new_gate_is_written_where_it_was_asked_for(tenant: Any, owner: Any) -> None:
    place = make_deployment(tenant)
    template(owner, "pattern", pattern="x", deployment=str(place.pk))
    with tenant_scope(tenant):
        assert Gate.objects.get(name="fresh").deployment_id == place.pk


def test_new_gate_cannot_be_put_on_another_tenants_deployment(tenant: Any, other_tenant: Any, owner: Any) -> None:
    foreign = make_deployment(other_tenant)
    answer = template(owner, "pattern", pattern="x", deployment=str(foreign.pk))
    with tenant_scope(tenant):
        assert answer.status_code == 422
        assert not Gate.objects.exists()


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("wanted", ["try", "save", "activate"])
def test_template_is_for_owners_only(role: str, wanted: str, tenant: Any, request: pytest.FixtureRequest) -> None:
    user = request.getfixturevalue(role)
    assert template(user, "approval", tools="refund", do=wanted).status_code == 403
    with tenant_scope(tenant):
        assert not Gate.objects.exists()


def test_drawing_shows_active_gates_at_their_place(owner: Any, gate: Gate) -> None:
    page = seen(owner, "console-gates", gate)
    first = page[page.index("Visitor message</h3>") : page.index("Documents and tool results</h3>")]
    assert address("console-gate", gate.pk) in first


def test_dry_run_shows_what_would_change(owner: Any, gate: Gate, deployment: Any) -> None:
    say(make_session(deployment), "Hello there")
    page = press(owner, "console-gate-try", gate).content.decode()
    assert "would change 1 of 1 decisions" in page
    assert "Hello there" in page
    assert "blocked by words" in page


def test_dry_run_shows_hostile_messages_as_words(owner: Any, gate: Gate, deployment: Any) -> None:
    say(make_session(deployment), "<script>alert(1)</script>")
    assert "<script>alert" not in press(owner, "console-gate-try", gate).content.decode()


@pytest.mark.parametrize("many", ["0", "-5", "x", "99999999999"])
def test_dry_run_of_strange_many_is_of_the_usual_number(owner: Any, gate: Gate, many: str) -> None:
    assert press(owner, "console-gate-try", gate, messages=many).status_code == 200


@pytest.mark.parametrize("number", [1, 3])
def test_list_asks_as_often_for_many_gates_as_for_one(
    tenant: Any, owner: Any, number: int, settings: Any, tmp_path: Path
) -> None:
    """The gates, their newest versions, the active ones, and who of them waits for a library that is not there."""
    settings.GUARDRAILS_DIR = tmp_path
    with tenant_scope(tenant):
        for each in range(number):
            save_gate(spec(f"gate{each}"))
    client = browser(owner)
    with CaptureQueriesContext(connection) as asked:
        client.get(reverse("console-gates"))
    assert len([one for one in asked.captured_queries if "gates_gate" in one["sql"]]) == 4


def test_retired_gate_can_come_back(tenant: Any, owner: Any, gate: Gate) -> None:
    with tenant_scope(tenant):
        retire(gate.pk)
    press(owner, "console-gate-activate", gate)
    with tenant_scope(tenant):
        assert Gate.objects.get(pk=gate.pk).active == 2


@pytest.mark.parametrize(("role", "leads"), [("owner", True), ("viewer", False)])
def test_activity_leads_to_the_gate_where_it_may_be_seen(
    gate: Gate, role: str, leads: bool, request: pytest.FixtureRequest
) -> None:
    page = browser(request.getfixturevalue(role)).get(reverse("console-activity") + "?show=policy").content.decode()
    assert "saved a gate" in page
    assert (f'href="{address("console-gate", gate.pk)}"' in page) is leads
