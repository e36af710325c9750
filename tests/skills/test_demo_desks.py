"""The two demo desks do what they say, prove it from outside, and touch no other customer's rows."""

import asyncio
from uuid import uuid4

import pytest

from apps.gates.schemas import Subject
from apps.gates.services import check_gates
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase
from apps.guard.schemas import ApprovedCalls, Call, Done, Failed, RunRef
from apps.skills import queries
from apps.skills.models import Record
from apps.skills.services import install_version
from apps.work.checks import checks_of
from apps.work.plans import parse
from apps.work.verification import run_checks
from kernel.tenancy import tenant_scope
from silas_platform import demo

MERIDIAN, HARBOR = demo.FOLDER / "meridian-insurance", demo.FOLDER / "harbor-retail"


class Desk:
    """A fresh tenant with a demo tenant's skill and records, and its tools as the guard runs them."""

    def __init__(self, tenant, folder, skill):
        self.tenant, self.folder, self.calls = tenant, folder, []
        with tenant_scope(tenant):
            install_version(demo.SKILLS / skill)
            demo.load_records(folder)
            self.refs = queries.pin([skill])
            self.tools = {tool.name: tool for tool in queries.tools_for(self.refs)}

    def call(self, name, customer, **args):
        tool = self.tools[name]
        call = Call(tool=name, args=args, access=frozenset({name}), acting=tool.acting)
        approval = ApprovedCalls(nonce=uuid4().hex, calls=frozenset({call.digest})) if tool.acting else None
        phase = Phase.EXECUTION if tool.acting else Phase.INTERACTIVE
        with tenant_scope(self.tenant):
            run = guard.open_run(
                Origin.WORK if tool.acting else Origin.CHAT, uuid4(), deployment_id=None, phase=phase, approval=approval
            )
        context = {"customer": customer, "skills": self.refs}
        ref = RunRef(self.tenant.pk, run.pk, approval=approval)
        outcome = asyncio.run(guard.guarded_call(ref, Intent.RUN_SKILL, call, context=context))
        self.calls.append({"tool": name, "args": args})
        return outcome

    def proofs(self, name, customer, *calls):
        """What the tool's own checks say about these calls, in sandboxes of their own."""
        tool = self.tools[name]
        with tenant_scope(self.tenant):
            mounts = queries.verification_mounts([tool], customer, calls or self.calls)
        return [result.passed for result in run_checks(checks_of([tool]), mounts=mounts).results]

    def row(self, key):
        with tenant_scope(self.tenant):
            return Record.objects.get(key=key).data

    def change(self, key, **fields):
        with tenant_scope(self.tenant):
            row = Record.objects.get(key=key)
            Record.objects.filter(pk=row.pk).update(data={**row.data, **fields})


@pytest.fixture
def meridian(tenant):
    return Desk(tenant, MERIDIAN, "meridian-desk")


@pytest.fixture
def harbor(tenant):
    return Desk(tenant, HARBOR, "harbor-desk")


def identify(desk, message, *recent):
    goal = parse((desk.folder / "goal.md").read_text())
    gate = next(gate for gate in goal.gates if gate.name == "identity_verified")
    with tenant_scope(desk.tenant):
        files = {gate.name: queries.gate_mounts(gate, desk.refs)}
    return check_gates([gate], "every_user_message", {"message": message, "recent": recent}, files=files)


@pytest.mark.parametrize(
    ("said", "customer"),
    [
        ("I am Maria Ortega, born 12 March 1984", "C-1001"),
        ("maria ortega, 1984-03-12", "C-1001"),
        ("my name is sean o'brien, born 30/01/1968", "C-1004"),
        ("Jurgen van der Berg, 5 December 1986", "C-1006"),
    ],
)
def test_customer_who_says_who_they_are_is_found(meridian, said, customer):
    assert [result.subject.id for result in identify(meridian, said).verified] == [customer]


@pytest.mark.parametrize(
    "said",
    ["I am Maria Ortega, born 13 March 1984", "I am Jonas Berg, born 1984-03-12", "I am Nobody Known, born 1984-03-12"],
)
def test_customer_who_says_something_else_is_not_found(meridian, said):
    assert identify(meridian, said).blocked.on_block == "retry_verification"


def test_customer_is_another_one_in_another_tenant(harbor):
    assert identify(harbor, "Maria Ortega, 1984-03-12").verified[0].subject == Subject("K-2001", "Maria Ortega")


def test_claim_status_names_the_claim_and_what_comes_next(meridian):
    said = meridian.call("claim_status", "C-1001", claim="CL-3071").value["say"]
    assert "CL-3071" in said
    assert "being assessed" in said


def test_claim_status_without_a_number_lists_ones_own(meridian):
    claims = meridian.call("claim_status", "C-1001").value["claims"]
    assert [claim["claim"] for claim in claims] == ["CL-2950", "CL-3071"]


def test_claim_status_of_somebody_else_is_not_found(meridian):
    outcome = meridian.call("claim_status", "C-1002", claim="CL-3071")
    assert outcome.code == "refused_by_tool"
    assert outcome.reason == "I cannot find CL-3071 among your claims."


def test_policy_lookup_tells_the_address(meridian):
    assert "18 Alder Court, Leeds LS2 7HX" in meridian.call("policy_lookup", "C-1001", policy="HM-20418").value["say"]


NEW_ADDRESS = {"policy": "HM-20418", "address": "Flat 3, 41 Canal Wharf, Leeds LS11 5PS"}


def test_update_address_changes_the_policy_and_keeps_the_old_one(meridian):
    meridian.call("update_address", "C-1001", **NEW_ADDRESS)
    row = meridian.row("HM-20418")
    assert row["address"] == NEW_ADDRESS["address"]
    assert row["previous_address"] == "18 Alder Court, Leeds LS2 7HX"


def test_update_address_is_proved_from_outside(meridian):
    meridian.call("update_address", "C-1001", **NEW_ADDRESS)
    assert meridian.proofs("update_address", "C-1001") == [True, True]


def test_update_address_that_did_not_happen_is_not_proved(meridian):
    call = {"tool": "update_address", "args": NEW_ADDRESS}
    assert meridian.proofs("update_address", "C-1001", call) == [False, False]


def test_update_address_without_any_call_is_not_proved(meridian):
    assert meridian.proofs("update_address", "C-1001", {"tool": "file_claim", "args": {}}) == [False, False]


@pytest.mark.parametrize(
    ("policy", "address", "reason"),
    [
        ("HM-20777", "41 Canal Wharf, Leeds LS11 5PS", "I cannot find HM-20777 among your policies."),
        ("HM-20418", "somewhere over the rainbow", "no postcode"),
        ("HM-20418", "18 Alder Court, Leeds LS2 7HX", "on the policy already"),
    ],
)
def test_update_address_that_makes_no_sense_is_refused(meridian, policy, address, reason):
    outcome = meridian.call("update_address", "C-1001", policy=policy, address=address)
    assert outcome.code == "refused_by_tool"
    assert reason in outcome.reason


def test_update_address_of_a_cancelled_policy_is_refused(meridian):
    outcome = meridian.call("update_address", "C-1005", policy="TR-50012", address="1 New Road, Whitby YO22 4PT")
    assert "not active" in outcome.reason


CLAIM = {"policy": "HM-20418", "incident_date": "2025-05-03", "description": "The hose of the washing machine split."}


def test_file_claim_is_on_record_and_proved(meridian):
    number = meridian.call("file_claim", "C-1001", **CLAIM).value["claim"]
    assert meridian.row(number)["status"] == "received"
    assert meridian.proofs("file_claim", "C-1001") == [True]


def test_file_claim_that_did_not_happen_is_not_proved(meridian):
    assert meridian.proofs("file_claim", "C-1001", {"tool": "file_claim", "args": CLAIM}) == [False]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"incident_date": "2999-01-01"}, "not come yet"),
        ({"incident_date": "2001-01-01"}, "began on"),
        ({"policy": "HM-21055"}, "cannot find"),
    ],
)
def test_file_claim_that_makes_no_sense_is_refused(meridian, fields, reason):
    outcome = meridian.call("file_claim", "C-1001", **{**CLAIM, **fields})
    assert outcome.code == "refused_by_tool"
    assert reason in outcome.reason


def test_card_of_a_change_of_address_shows_before_and_after(meridian):
    with tenant_scope(meridian.tenant):
        facts = queries.card_facts(meridian.tools["update_address"], NEW_ADDRESS, "C-1001")
    assert facts[0] == {
        "label": "Address",
        "before": "18 Alder Court, Leeds LS2 7HX",
        "after": "Flat 3, 41 Canal Wharf, Leeds LS11 5PS",
    }


def test_order_status_says_where_it_is(harbor):
    assert "should arrive" in harbor.call("order_status", "K-2001", order="H-90340").value["say"]


def test_return_status_of_an_order_without_return_says_so(harbor):
    assert harbor.call("return_status", "K-2001", order="H-90187").value["say"] == "There is no return for H-90187."


def refund(harbor, order="H-90187", amount=21.5, customer="K-2001"):
    return harbor.call("refund", customer, order=order, amount=amount, reason="damaged")


def test_refund_is_in_the_ledger_and_on_the_order(harbor):
    number = refund(harbor).value["refund"]
    assert harbor.row(number)["amount"] == 21.5
    assert harbor.row("H-90187")["refunded"] == 21.5


def test_refund_is_proved_from_outside(harbor):
    refund(harbor)
    assert harbor.proofs("refund", "K-2001") == [True, True]


def test_refund_twice_is_counted_and_proved_twice(harbor):
    refund(harbor, amount=10)
    refund(harbor, amount=10)
    assert harbor.row("H-90187")["refunded"] == 20
    assert harbor.proofs("refund", "K-2001") == [True, True]


def test_refund_that_did_not_happen_is_not_proved(harbor):
    call = {"tool": "refund", "args": {"order": "H-90187", "amount": 21.5, "reason": "damaged"}}
    assert harbor.proofs("refund", "K-2001", call) == [False, True]


def test_refund_whose_order_does_not_add_up_is_not_proved(harbor):
    refund(harbor)
    harbor.change("H-90187", refunded=0)
    assert harbor.proofs("refund", "K-2001") == [True, False]


@pytest.mark.parametrize(
    ("order", "amount", "reason"),
    [
        ("H-90187", 43.51, "Only £43.50"),
        ("H-90187", 0.001, "pounds and pence"),
        ("H-90340", 5, "not been delivered"),
        ("H-90270", 5, "cannot find H-90270"),
        ("H-90102", 5, "cannot find H-90102"),
    ],
)
def test_refund_that_is_not_owed_is_refused(harbor, order, amount, reason):
    outcome = refund(harbor, order=order, amount=amount)
    assert outcome.code == "refused_by_tool"
    assert reason in outcome.reason


@pytest.mark.parametrize("amount", [0, -5, "21.50", 10001])
def test_refund_of_no_proper_sum_never_reaches_the_script(harbor, amount):
    outcome = refund(harbor, amount=amount)
    assert type(outcome) is Failed
    assert outcome.code == "bad_arguments"


def test_refund_of_everything_that_is_left_is_paid(harbor):
    assert isinstance(refund(harbor, order="H-90190", amount=46, customer="K-2005"), Done)
