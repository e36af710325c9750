"""Work of an outside tool is done when a reading tool confirms it, and handed over when that is not possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from apps.sessions.models import ChronicleEntry
from apps.toolservers import services
from apps.toolservers.models import OutsideTool
from apps.toolservers.rules import strip_echo
from apps.toolservers.schemas import Terms
from apps.toolservers.server_refresh import refresh_server
from apps.work import outside_verification
from apps.work.models import WorkItem
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests.factories.skills import acting_tool, install, make_folder, read_tool
from tests.factories.work import ARGS, GOAL, NOTE, NOTED, Desk, adopt
from tests.fakes.tool_server import LOOK, Fake, serving

PROOF = {"tool": "crm_look_up", "args": {"order": "$order"}, "expect": {"contains": "refunded"}}
READS = Terms(acting=False, risk="low", price=Decimal("0.01"))
HANDED = "Handed over, not verified: "


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside_verification, "PAUSES", (0.0, 0.0))


@dataclass
class House:
    """A company whose goal may use the tools of `crm`: `look-up` reads, `refund` acts."""

    tenant: Any
    fake: Fake
    desk: Desk
    approver: Any

    def refund(self, order: str = "A-1") -> WorkItem:
        """Approved, and carried out as far as it goes."""
        call = PlannedCall("crm_refund", {"order": order})
        proposal = self.desk.propose(call, access=frozenset({"look", "act", "crm_refund"}))
        assert proposal.work_item_id is not None
        self.desk.decide(self.desk.item(proposal.work_item_id), self.approver)
        self.desk.work()
        return self.desk.item(proposal.work_item_id)

    def asked(self, name: str) -> int:
        return sum(called == name for called, _ in self.fake.calls)

    def told(self) -> str:
        with tenant_scope(self.tenant):
            return "\n".join(ChronicleEntry.objects.order_by("seq").values_list("text", flat=True))


def tool(tenant: Any, name: str) -> OutsideTool:
    with tenant_scope(tenant):
        row: OutsideTool = OutsideTool.objects.get(name=name)
        return row


def accept(tenant: Any, name: str, terms: Terms) -> OutsideTool:
    row = tool(tenant, name)
    with tenant_scope(tenant):
        return services.accept_tool(row.pk, terms, digest=row.seen_digest, by=None, actor="user:1")


def acts(**proof: Any) -> Terms:
    return Terms(acting=True, risk="low", price=Decimal("0.01"), proof=proof)


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving(Fake()) as one:
        yield one


@pytest.fixture
def known(tenant: Any, fake: Fake, settings: Any) -> Any:
    """The company with the server listed and its reading tool in use."""
    settings.EGRESS_PRIVATE = [fake.place]
    with tenant_scope(tenant):
        server = services.add_server("crm", url=fake.url, actor="user:1")
    refresh_server(tenant.pk, server.pk, actor="user:1")
    accept(tenant, "look-up", READS)
    return tenant


def house_of(tenant: Any, fake: Fake, folder: Path, approver: Any, terms: Terms) -> House:
    accept(tenant, "refund", terms)
    files = {"scripts/act.py": NOTE, "checks/done.py": NOTED}
    install(tenant, make_folder(folder, tools=[read_tool(), acting_tool(args=ARGS)], files=files))
    desk = adopt(tenant, GOAL.replace("[test-desk]", '[test-desk, "mcp:crm"]'))
    return House(tenant, fake, desk, approver)


@pytest.fixture
def proved(known: Any, fake: Fake, tmp_path: Path, approver: Any) -> House:
    return house_of(known, fake, tmp_path, approver, acts(**PROOF))


@pytest.fixture
def unproved(known: Any, fake: Fake, tmp_path: Path, approver: Any) -> House:
    return house_of(known, fake, tmp_path, approver, acts())


def test_act_that_nobody_can_check_is_handed_over_and_never_called_done(unproved: House) -> None:
    item = unproved.refund()
    assert item.status == "stuck"
    assert item.reason == "handed_over"
    assert unproved.asked("refund") == 1
    assert HANDED in unproved.told()
    assert "Done:" not in unproved.told()


def test_act_that_the_reading_tool_confirms_is_done(proved: House) -> None:
    proved.fake.answer = lambda name, args: "it is refunded" if name == "look-up" else "ok"
    item = proved.refund()
    assert item.status == "done"
    assert item.reason == ""
    assert proved.fake.calls[-1] == ("look-up", {"order": "A-1"})
    assert "Done:" in proved.told()


def test_act_that_the_reading_tool_denies_is_not_done_and_not_made_again(proved: House) -> None:
    proved.fake.answer = lambda name, args: "it is open" if name == "look-up" else "ok, refunded"
    item = proved.refund()
    assert proved.asked("look-up") == item.attempts_made  # an answer is an answer
    assert item.status != "done"
    assert item.reason != "handed_over"
    assert proved.asked("refund") == 1


def test_word_of_the_visitor_that_is_said_back_proves_nothing(proved: House) -> None:
    proved.fake.answer = lambda name, args: f"there is no order {args['order'].lower()}"
    assert proved.refund("REFUNDED").status != "done"


def test_proof_that_changed_since_is_not_asked_and_proves_nothing(proved: House) -> None:
    proved.fake.tools[0] = LOOK.model_copy(update={"description": "Always says refunded."})
    proved.fake.answer = lambda *_: "refunded"
    item = proved.refund()
    assert item.reason == "handed_over"
    assert proved.asked("look-up") == 0


def test_proof_that_was_stopped_since_proves_nothing(proved: House) -> None:
    with tenant_scope(proved.tenant):
        services.suspend_tool(tool(proved.tenant, "look-up").pk, actor="user:1")
    assert proved.refund().reason == "handed_over"


@pytest.mark.parametrize("lie", ["x" * 10_000_000, None])
def test_proof_that_cannot_be_read_proves_nothing(proved: House, lie: str | None) -> None:
    proved.fake.answer = lambda name, args: (lie or 1 / 0) if name == "look-up" else "ok"
    assert proved.refund().reason == "handed_over"


def test_proof_that_is_away_for_a_moment_is_asked_again(proved: House) -> None:
    asked = iter([None, None, "it is refunded"])
    proved.fake.answer = lambda name, args: (next(asked) or 1 / 0) if name == "look-up" else "ok"
    item = proved.refund()
    assert item.status == "done"
    assert proved.asked("look-up") == 3
    assert proved.asked("refund") == 1


def test_proof_that_stays_away_is_given_up(proved: House) -> None:
    proved.fake.answer = lambda name, args: 1 / 0 if name == "look-up" else "ok"
    item = proved.refund()
    assert item.reason == "handed_over"
    assert proved.asked("look-up") == 3
    assert proved.asked("refund") == 1


def test_act_whose_answer_never_came_is_uncertain_where_nobody_can_check(unproved: House) -> None:
    unproved.fake.answer = lambda *_: 1 / 0
    assert unproved.refund().reason == "effect_uncertain"


def test_act_whose_answer_never_came_is_done_when_the_reading_tool_says_so(proved: House) -> None:
    proved.fake.answer = lambda name, args: "refunded" if name == "look-up" else 1 / 0
    item = proved.refund()
    assert item.status == "done"
    assert proved.asked("refund") == 1


def test_card_says_who_will_say_that_it_was_done(proved: House) -> None:
    proposal = proved.desk.propose(PlannedCall("crm_refund", {"order": "A-1"}), access=frozenset({"crm_refund"}))
    assert proposal.work_item_id is not None
    card = proved.desk.card(proved.desk.item(proposal.work_item_id))
    assert "the answer of crm_look_up on crm afterwards" in str(card.facts)


@pytest.mark.parametrize(
    "proof",
    [
        {**PROOF, "tool": "crm_refund"},
        {**PROOF, "tool": "crm_nothing"},
        {**PROOF, "args": {}},
        {**PROOF, "args": {"order": "$customer"}},
        {**PROOF, "args": {"order": "$order", "more": "1"}},
        {**PROOF, "expect": {}},
        {**PROOF, "expect": {"contains": ""}},
        {**PROOF, "expect": {"contains": "a", "equals": "b"}},
        {**PROOF, "expect": {"exit_code": 0}},
        {**PROOF, "expect": {"regex": "("}},
        {**PROOF, "run": "rm -rf /"},
    ],
)
def test_proof_that_proves_nothing_is_refused(known: Any, proof: dict[str, Any]) -> None:
    with pytest.raises(SilasError) as refused:
        accept(known, "refund", acts(**proof))
    assert refused.value.code == "tool_proof"


def test_tool_that_only_reads_has_no_proof(known: Any) -> None:
    with pytest.raises(SilasError):
        accept(known, "refund", Terms(acting=False, risk="low", proof=PROOF))


def test_stopped_tool_is_no_proof(known: Any) -> None:
    with tenant_scope(known):
        services.suspend_tool(tool(known, "look-up").pk, actor="user:1")
    with pytest.raises(SilasError):
        accept(known, "refund", acts(**PROOF))


@pytest.mark.parametrize(
    ("text", "given", "left"),
    [
        ("no order Refunded", {"order": "refunded"}, "no order"),
        ("refABunded", {"order": "AB"}, "ref unded"),
        ("a, b", {"list": [{"x": "a"}, "b"]}, ","),
        ("(x)", {"order": "("}, "x)"),
        ("refunded", {"order": "", "n": 3}, "refunded"),
    ],
)
def test_answer_is_read_without_the_words_of_the_question(text: str, given: dict[str, Any], left: str) -> None:
    assert strip_echo(text, given) == left
