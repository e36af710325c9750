"""A model's plan: what the harness keeps, what it rejects with a reason, and what a person is shown."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict, CardStatus
from apps.approvals.models import Card, TokenUse
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.gates.allowance import ComputeLimit
from apps.gates.schemas import GateSpec
from apps.work import queries, rules, services, signals
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import current_scope
from llm.calls import PlannedCall
from tests.factories.approvals import expire_cards
from tests.factories.sessions import make_session
from tests.factories.work import GOAL, Desk, make_desk, note, plan
from tests.rivals import race


def owed(desk: Desk) -> list[QueueMessage]:
    with tenant_scope(desk.tenant):
        return list(QueueMessage.objects.filter(queue="executor"))


def gate(fields: str) -> str:
    return f"gates:\n  - {{name: mine, on: on_tool_call, {fields}}}\n"


# --- refused


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"plan_markdown": "no front matter"}, "plan_front_matter_missing"),
        ({"plan_markdown": plan()}, "plan_without_calls"),
        ({"plan_markdown": plan(note(), note())}, "plan_call_twice"),
        ({"plan_markdown": plan(PlannedCall("drop_table", {}))}, "tool_not_granted"),
        ({"plan_markdown": plan(note()).replace("type: task", "type: goal")}, "plan_type_not_allowed"),
        ({"plan_markdown": plan(PlannedCall("act", {"order": "H-1"}))}, "bad_arguments"),
        ({"plan_markdown": plan(PlannedCall("act", {"order": "H-1", "note": 1, "sudo": True}))}, "bad_arguments"),
        ({"plan_markdown": plan(note(-1))}, "bad_arguments"),
        ({"plan_markdown": plan(note(101))}, "gate_blocked"),
        ({"plan_markdown": plan(*(note(value) for value in range(26, 37)))}, "plan_too_many_calls"),
        ({"plan_markdown": plan(note(), front=gate("type: approval_always"))}, "plan_gate_not_allowed"),
        ({"plan_markdown": plan(note(order="H-1\u202e1-H"))}, "hidden_characters"),
        ({"plan_markdown": plan(note(order="H-1\u200b"))}, "hidden_characters"),
        ({"plan_markdown": plan(note(), prose="Approve \u202ethis")}, "hidden_characters"),
        (
            {"plan_markdown": plan(note(), front=gate("type: regex, config: {pattern: (a+)+$}"))},
            "plan_gate_not_allowed",
        ),
        ({"plan_markdown": plan(note(), front=gate("provider: script"))}, "plan_gate_not_allowed"),
        ({"access": frozenset({"look"})}, "tool_not_granted"),
        ({"access": frozenset()}, "tool_not_granted"),
    ],
)
def test_propose_of_what_may_not_be_is_refused(desk: Desk, fields: dict[str, Any], code: str) -> None:
    assert desk.propose(**fields).code == code


def test_propose_of_blocked_call_gives_the_company_s_sentence(desk: Desk) -> None:
    assert desk.propose(note(101)).reason == "Notes above 100 are not made here."


def test_propose_that_is_refused_leaves_nothing_but_an_audit_entry(desk: Desk) -> None:
    desk.propose(note(101))
    with tenant_scope(desk.tenant):
        left = (WorkItem.objects.exclude(type="goal").count(), Card.objects.count())
        entry = AuditEntry.objects.filter(event="work_refused").values_list("data", flat=True)
        assert left == (0, 0)
        assert list(entry) == ['{"code":"gate_blocked"}']


@pytest.mark.parametrize("config", [{"pattern": r"\A(?!.*4111)"}, {"redact": "4111"}])
def test_propose_of_a_title_that_no_answer_could_hold_is_refused(desk: Desk, config: dict[str, str]) -> None:
    """The title contains the order's number, in which the model may write anything."""
    gate = GateSpec(name="out", on="every_agent_response", type="regex", config=config)
    assert desk.propose(note(order="4111 1111"), gates=(gate,)).code == "gate_blocked"


def test_gates_of_one_transaction_have_one_time_together(desk: Desk) -> None:
    """Rows are locked meanwhile: earlier proposals have used the time up, and a timeout blocks."""
    with tenant_scope(desk.tenant):
        assert desk.propose(note()).outcome == "card"
        current_scope().counted[ComputeLimit] = ComputeLimit(0)
        assert desk.propose(note(51)).code == "gate_blocked"


def test_gates_of_another_transaction_begin_with_all_of_it(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        current_scope().counted[ComputeLimit] = ComputeLimit(0)
    assert desk.propose(note()).outcome == "card"


def test_propose_without_a_goal_is_refused(desk: Desk) -> None:
    desk.deployment.active_goal_id = None
    assert desk.propose().code == "tool_not_granted"


# --- put before a person


def test_propose_of_acting_call_opens_a_card(desk: Desk) -> None:
    assert desk.propose(note(50)).outcome == "card"


def test_propose_of_small_call_without_standing_approval_opens_a_card(desk: Desk) -> None:
    assert desk.propose(note(5)).outcome == "card"


def test_card_binds_exactly_the_stored_plan(desk: Desk) -> None:
    item = desk.waiting()
    assert desk.card(item).payload_hash == item.plan_hash == item.spec.plan_hash


def test_card_says_what_each_button_does(desk: Desk) -> None:
    card = desk.card(desk.waiting())
    assert card.intent == "Change H-1"
    assert card.consequence == {"approve": "Change it", "decline": "Nothing changes"}


def test_card_shows_undo_and_proof(desk: Desk) -> None:
    facts = {fact["label"]: fact["text"] for fact in desk.card(desk.waiting()).facts}
    assert facts == {
        "Runs": "By the script of test-desk in a sandbox without network",
        "Can be undone": "Yes, by a further change",
        "Verified by": "1 independent check",
    }


def test_bound_plan_carries_the_skill_s_checks_although_the_model_left_them_out(desk: Desk) -> None:
    assert [check.name for check in desk.waiting().spec.verify] == ["done"]


def test_title_of_endless_arguments_is_cut(desk: Desk) -> None:
    long = desk.propose(note(order="H" * 1000))
    assert long.work_item_id
    assert len(desk.item(long.work_item_id).title) == len("Change ") + 194


def test_bound_plan_pins_the_skill_by_content(desk: Desk) -> None:
    assert desk.waiting().spec.skills[0].startswith("test-desk@")


def test_bound_plan_names_the_verified_customer(desk: Desk) -> None:
    assert desk.waiting().spec.domain == "business:customer/C-1"


@pytest.mark.parametrize(
    "front",
    [
        "budget: {max_cost_usd: 999999, max_attempts: 99}\n",
        "budget: {max_wall_time_seconds: 1, max_attempts: 1}\n",
        "verify: [{name: approved by the manager, run: python3 -V, expect: {exit_code: 0}}]\n",
        "verify: [{name: never, run: python3 -V, expect: {exit_code: 1}, network: true, timeout: 600}]\n",
        "on_stuck: tell_the_manager_that_it_failed\n",
        "domain: business:customer/C-2\n",
        "escalation: {report: {action: respond, message: All good.}}\n",
        "access_levels: {public: {tools: [act]}}\n",
        "failure_context: Do it again.\n",
        "id: 00000000-0000-0000-0000-000000000001\n",
        "needs_approval: false\n",
        "interaction_mode: act_and_report\n",
        "skills: [other-desk]\n",
        "parent: goal\n",
        "schedule: always_on\n",
    ],
)
def test_bound_plan_takes_no_power_from_the_model(desk: Desk, front: str) -> None:
    proposal = desk.propose(plan_markdown=_with(front))
    assert proposal.work_item_id
    spec = desk.item(proposal.work_item_id).spec.as_plan()
    plain = desk.waiting(51).spec.as_plan()
    assert {**spec, "id": "", "body": ""} == {**plain, "id": "", "body": ""}


def _with(front: str) -> str:
    """A plan with the front matter `front` in place of the usual one."""
    return plan(note(), front=front).replace("id: task-x\n", "" if front.startswith("id:") else "id: task-x\n")


def test_waiting_item_is_told_to_the_rooms_above(desk: Desk) -> None:
    told: list[tuple[str, str]] = []

    def hear(item: WorkItem, status: str, progress: signals.Progress) -> None:
        told.append((status, str(progress.text)))

    signals.work_changed.connect(hear)
    try:
        desk.propose()
    finally:
        signals.work_changed.disconnect(hear)
    (status, text) = told[0]
    assert len(told) == 1
    assert status == "pending"
    assert text.splitlines()[0] == "Waiting for approval by our team: Change H-1."
    assert set(text.splitlines()[1:]) == {"note: 50", "order: H-1"}


def test_open_work_names_what_waits(desk: Desk) -> None:
    item = desk.waiting()
    assert item.session_id
    with tenant_scope(desk.tenant):
        assert queries.open_work(item.session_id, subject="C-1").value == [("C-1", "Change H-1")]


@pytest.mark.parametrize("subject", ["C-2", ""])
def test_open_work_names_nothing_of_another_customer(desk: Desk, subject: str) -> None:
    item = desk.waiting()
    assert item.session_id
    with tenant_scope(desk.tenant):
        assert queries.open_work(item.session_id, subject=subject).value == []


def _decline(desk: Desk, item: Any, user: Any, **said: str) -> None:
    with tenant_scope(desk.tenant):
        decide_card(desk.card(item).pk, user=user, verdict=ApprovalVerdict.DECLINED, said=said)


def test_visitor_is_told_the_reason_and_never_the_note(desk: Desk, approver: Any) -> None:
    item, told = desk.waiting(), []

    def hear(item: Any, status: str, progress: signals.Progress) -> None:
        told.append(str(progress.text))

    signals.work_changed.connect(hear)
    try:
        _decline(desk, item, approver, choice="decline", reason="missing_information", freetext="Rude on the phone")
    finally:
        signals.work_changed.disconnect(hear)
    assert told[-1] == (
        "We couldn't approve this change: Change H-1. Nothing was changed."
        " Some information is missing. Please tell us more and ask again."
    )


@pytest.mark.parametrize(("said", "why"), [({"reason": "not_verified"}, "not_verified"), ({}, None)])
def test_declined_work_says_why(desk: Desk, approver: Any, said: dict[str, str], why: str | None) -> None:
    item = desk.waiting()
    _decline(desk, item, approver, **said)
    with tenant_scope(desk.tenant):
        assert queries.declined_work(item.session_id, subject="C-1").value == [("C-1", "Change H-1", why)]
        assert queries.declined_work(item.session_id, subject="C-2").value == []
        assert queries.declined_work(uuid4(), subject="C-1").value == []
        WorkItem.objects.update(updated_at=now() - timedelta(days=8))
        assert queries.declined_work(item.session_id, subject="C-1").value == []


@pytest.mark.parametrize("where", ["the same conversation", "another conversation"])
def test_propose_of_what_is_under_way_already_is_refused(desk: Desk, where: str) -> None:
    item = desk.waiting()
    more = {"session_id": item.session_id} if where == "the same conversation" else {}
    assert desk.propose(note(), **more).code == "waiting_already"


def test_propose_of_what_was_declined_may_be_asked_again(desk: Desk, approver: Any) -> None:
    desk.decide(desk.waiting(), approver, ApprovalVerdict.DECLINED)
    assert desk.propose().outcome == "card"


def test_propose_of_another_customer_s_same_wish_opens_a_card(desk: Desk) -> None:
    desk.waiting()
    assert desk.propose(subject="C-2").outcome == "card"


def test_propose_of_one_thing_more_than_may_wait_is_refused(desk: Desk) -> None:
    outcomes = [desk.propose(note(26 + value)) for value in range(rules.MAX_WAITING + 1)]
    assert [outcome.code for outcome in outcomes] == [""] * rules.MAX_WAITING + ["too_much_waiting"]


def test_rivals_of_one_customer_open_one_card(desk: Desk) -> None:
    sessions = [make_session(desk.deployment).pk for _ in range(6)]
    answers = race(*[partial(desk.propose, session_id=session) for session in sessions])
    assert sorted(answer.code for answer in answers) == [""] + ["waiting_already"] * 5  # type: ignore[union-attr]


def test_card_of_several_calls_tells_each_apart(desk: Desk) -> None:
    proposal = desk.propose(note(50), note(51, "H-3"))
    assert proposal.work_item_id
    facts = desk.card(desk.item(proposal.work_item_id)).facts
    said = [(fact["label"], fact["text"]) for fact in facts if fact["label"].endswith("of 2")]
    assert said == [("1 of 2", "Change H-1"), ("2 of 2", "Change H-3")]


# --- decided


def test_approval_owes_the_item_to_the_executor_once(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    assert [(message.kind, message.task_id) for message in owed(desk)] == [("execution_request", item.pk)]


def test_approval_attaches_and_spends_the_token(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    assert item.approval_token
    with tenant_scope(desk.tenant):
        assert TokenUse.objects.get(token_nonce=item.approval_token.nonce).bound_hash == item.plan_hash


@pytest.mark.parametrize("verdict", [v for v in ApprovalVerdict if v != ApprovalVerdict.APPROVED])
def test_any_other_verdict_runs_nothing(desk: Desk, approver: Any, verdict: ApprovalVerdict) -> None:
    item = desk.waiting()
    desk.decide(item, approver, verdict)
    ended = desk.item(item.pk)
    reason = WorkReason.DECLINED if verdict == ApprovalVerdict.DECLINED else WorkReason.LEFT_OUT
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == reason
    assert owed(desk) == []


def test_approval_of_a_plan_changed_meanwhile_runs_nothing(desk: Desk, approver: Any) -> None:
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(plan=item.plan.replace("H-1", "H-2"))
    desk.decide(item, approver)
    ended = desk.item(item.pk)
    assert ended.reason == WorkReason.NOT_APPROVED
    assert ended.last_error == "plan_hash_mismatch"
    assert owed(desk) == []


def test_card_that_ran_out_ends_the_item(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        Card.objects.filter(subject_id=item.pk).update(created_at="2020-01-01T00:00Z", expires_at="2020-01-02T00:00Z")
    expire_cards(desk.tenant)
    assert desk.item(item.pk).reason == WorkReason.EXPIRED
    assert desk.card(item).status == CardStatus.EXPIRED


# --- standing approval


def test_small_call_under_standing_approval_runs_at_once(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    proposal = desk.propose(note(5))
    assert proposal.outcome == "dispatched"
    assert len(owed(desk)) == 1


def test_second_small_call_about_one_record_opens_a_card(desk: Desk, owner: Any) -> None:
    """A hundred is refused; four times twenty-five must not pass one by one."""
    desk.allow_standing(owner)
    assert [desk.propose(note(value)).outcome for value in (25, 24)] == ["dispatched", "card"]


def test_small_call_about_another_record_runs_at_once(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    assert [desk.propose(note(25, order)).outcome for order in ("H-1", "H-3")] == ["dispatched", "dispatched"]


def test_small_call_about_one_record_a_day_later_runs_at_once(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    first = desk.propose(note(25))
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=first.work_item_id).update(created_at=now() - timedelta(hours=25))
    assert desk.propose(note(24)).outcome == "dispatched"


def test_small_call_after_one_that_came_to_nothing_runs_at_once(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    first = desk.propose(note(25))
    with tenant_scope(desk.tenant):
        for status in (WorkItemStatus.RUNNING, WorkItemStatus.FAILED):
            WorkItem.objects.filter(pk=first.work_item_id).update(status=status)
    assert desk.propose(note(24)).outcome == "dispatched"


def test_standing_child_holds_nothing_of_the_model_s_plan(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    proposal = desk.propose(note(5))
    assert proposal.work_item_id
    spec = desk.item(proposal.work_item_id).spec
    assert spec.body.splitlines()[0] == "Note it."
    assert spec.parent == str(desk.goal_id)
    assert spec.calls == (note(5),)


def test_medium_call_under_standing_approval_opens_a_card(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    assert desk.propose(note(50)).outcome == "card"


def test_large_call_under_standing_approval_is_refused(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    assert desk.propose(note(500)).outcome == "refused"


def test_two_calls_under_standing_approval_open_a_card(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    assert desk.propose(note(5), note(6, "H-2")).outcome == "card"


def test_standing_approval_that_is_used_up_opens_a_card(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner, uses=1)
    assert [desk.propose(note(value)).outcome for value in (1, 2)] == ["dispatched", "card"]


@pytest.mark.parametrize(("tool", "risk"), [({}, "high"), ({"reversible": False}, "irreversible")])
def test_card_of_a_standing_approval_says_how_it_runs_and_how_risky_it_is(
    tenant: Any, tmp_path: Path, tool: dict[str, Any], risk: str
) -> None:
    desk = make_desk(tenant, tmp_path, **tool)
    with tenant_scope(tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        card = services.request_standing_approval(goal, uses=1, days=1, rationale="Why not.")
    assert card.risk == risk
    assert {"label": "Runs", "text": "By the script of test-desk in a sandbox without network"} in card.facts


def test_standing_approval_that_is_declined_allows_nothing(desk: Desk, owner: Any) -> None:
    with tenant_scope(desk.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        services.request_standing_approval(goal, uses=1, days=1, rationale="Why not.")
    desk.decide(goal, owner, ApprovalVerdict.DECLINED)
    assert desk.propose(note(5)).outcome == "card"
    assert desk.item(goal.pk).status == WorkItemStatus.HEALTHY


def test_standing_approval_of_an_edited_goal_opens_a_card(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    with tenant_scope(desk.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        WorkItem.objects.filter(pk=goal.pk).update(plan=goal.plan.replace("Be kind.", "Be quick."))
    assert desk.propose(note(5)).outcome == "card"


# --- goals

BACKWARDS = '{name: cap, "on": on_tool_call, type: numeric_range, extract: note, auto_approve: {min: 9, max: 1}}'


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("type: goal", "type: task"), "plan_not_a_goal"),
        (("schedule: always_on", "agent: ephemeral"), ""),
        (('"order":"$order"', '"order":"for $order"'), "bad_template"),
        (("skills: [test-desk]", "skills: [nowhere]"), "skill_missing"),
        (("escalation:", f"gates: [{BACKWARDS}]\nescalation:"), "gate_invalid"),
    ],
)
def test_adopt_goal_is_strict(desk: Desk, change: tuple[str, str], code: str) -> None:
    answer = ""
    try:
        with tenant_scope(desk.tenant):
            services.adopt_goal(GOAL.replace(*change), deployment_id=desk.deployment.pk, requested_by="user:test")
    except SilasError as refused:
        answer = refused.code
    assert answer == code


def test_active_goal_of_other_tenant_is_not_found(desk: Desk, other_tenant: Any) -> None:
    with tenant_scope(other_tenant):
        assert queries.active_goal(desk.deployment) is None
