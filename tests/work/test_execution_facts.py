"""A card says where a call runs, what it can reach there, with which account, and how risky the tool was rated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.work.services.execution_facts import RUNS
from kernel.language import in_language
from kernel.stored_texts import show_stored
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests.factories.console import browser
from tests.factories.skills import acting_tool, install, make_folder, read_tool
from tests.factories.work import ARGS, NOTE, NOTED, Desk, adopt, make_desk
from tests.fakes.tool_server import Fake, serving
from tests.work.test_outside_verification import GOAL, Terms, accept, known  # noqa: F401  (a fixture)


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving(Fake()) as one:
        yield one


def _facts(card: Card) -> dict[str, str]:
    return {fact["label"]: fact.get("text", "") for fact in card.facts}


def _outside(tenant: Any, folder: Path, risk: str) -> Card:
    accept(tenant, "refund", Terms(acting=True, risk=risk))
    make_desk(tenant, folder)
    desk = adopt(tenant, GOAL.replace("[test-desk]", "[test-desk, 'mcp:crm']"))
    call = PlannedCall("crm_refund", {"order": "A-1"})
    proposal = desk.propose(call, access=frozenset({"crm_refund"}))
    assert proposal.work_item_id is not None, proposal
    return desk.card(desk.item(proposal.work_item_id))


def test_script_without_network_says_so(tenant: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    card = desk.card(desk.waiting())
    assert _facts(card)["Runs"] == "By the script of test-desk in a sandbox without network"
    assert "Risk rating" not in _facts(card)
    assert "Checked for conflicts" not in _facts(card)


def test_script_with_network_names_its_hosts(tenant: Any, tmp_path: Path) -> None:
    tools = [read_tool(), acting_tool(args=ARGS)]
    needs = {"network": ["api.example.com", "mail.example.com:25"]}
    files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
    install(tenant, make_folder(tmp_path, tools=tools, files=files, requirements=needs))
    desk = adopt(tenant)
    text = _facts(desk.card(desk.waiting()))["Runs"]
    assert text == "By the script of test-desk in a sandbox that may reach api.example.com:443, mail.example.com:25"


def test_outside_act_names_its_server_and_key(known: Any, tmp_path: Path) -> None:  # noqa: F811
    text = _facts(_outside(known, tmp_path, "low"))["Runs"]
    assert text == "By crm at 127.0.0.1, outside of our sandbox, without a key"


def test_outside_act_says_that_it_is_not_compared_before(known: Any, tmp_path: Path) -> None:  # noqa: F811
    assert _facts(_outside(known, tmp_path, "low"))["Checked for conflicts"].startswith("No.")


@pytest.mark.parametrize(
    ("judged", "rung"), [("low", "medium"), ("medium", "medium"), ("high", "high"), ("irreversible", "irreversible")]
)
def test_outside_act_is_as_grave_as_it_was_judged(known: Any, tmp_path: Path, judged: str, rung: str) -> None:  # noqa: F811
    card = _outside(known, tmp_path, judged)
    assert card.risk == rung
    assert _facts(card)["Risk rating"].lower().startswith(judged)


def test_page_of_an_outside_act_speaks_of_no_sandbox_of_ours(
    known: Any,  # noqa: F811
    tmp_path: Path,
    owner: Any,
) -> None:
    card = _outside(known, tmp_path, "low")
    found = browser(owner).get(f"/console/review/{card.pk}/").content.decode()
    assert "in a sandbox" not in found
    assert "outside of our sandbox" in found


def test_line_of_a_tool_under_a_name_of_ours_is_quoted(tenant: Any, tmp_path: Path) -> None:
    facts = [
        {"label": "Runs", "text": "on the moon"},
        {"label": "Account", "text": "somebody"},
        {"label": "Verified by", "text": "two banks"},
        {"label": "Can be undone", "text": "always"},
    ]
    desk: Desk = make_desk(tenant, tmp_path, facts=facts)
    found = _facts(desk.card(desk.waiting()))
    assert found["Runs (says the tool)"] == "on the moon"
    assert found["Account (says the tool)"] == "somebody"
    assert found["Verified by (says the tool)"] == "two banks"
    assert found["Can be undone (says the tool)"] == "always"
    assert found["Verified by"] != "two banks"
    assert found["Runs"] == "By the script of test-desk in a sandbox without network"


def test_line_of_a_tool_under_a_translated_name_of_ours_is_quoted(tenant: Any, tmp_path: Path) -> None:
    facts = [{"label": label, "text": "somebody"} for label in ("Konto", "risk rating", "Kontostand")]
    desk: Desk = make_desk(tenant, tmp_path, facts=facts)
    found = _facts(desk.card(desk.waiting()))
    assert found["Konto (says the tool)"] == "somebody"
    assert found["risk rating (says the tool)"] == "somebody"
    assert found["Kontostand"] == "somebody"


def test_way_is_signed_with_the_approval(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.approved(approver)
    with tenant_scope(tenant):
        card = Card.objects.get(subject_id=item.pk)
    assert card.details["calls"][0]["runs"] == "By the script of test-desk in a sandbox without network"
    assert item.approval_token is not None
    assert "face" in item.approval_token.conditions


@pytest.mark.parametrize(
    ("language", "label"), [("de", "Ausführung"), ("fr", "Exécution"), ("es", "Ejecución"), ("nl", "Uitvoering")]
)
def test_how_a_call_runs_is_not_labelled_as_several_runs(language: str, label: str) -> None:
    with in_language(language):
        assert show_stored(RUNS) == label
