"""The loop from the agent's side: begin, report, be held, be let go, end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.safety import services
from apps.safety.models import Challenge, Execution, Hold, Step, StepWindow
from apps.safety.services.challenges import show_code
from apps.safety.services.confirmations import allow, issue_token
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.safety import (
    DANGER,
    HARMLESS,
    TO_CONFIRM,
    TO_VERIFY,
    Agent,
    challenge_of,
    code_of,
    data,
    policy,
    started,
)
from tests.rivals import race


@pytest.fixture
def clerk(tenant: Any) -> Agent:
    return started(tenant)


def test_harmless_step_goes_on_and_is_written_down(clerk: Agent) -> None:
    directive = clerk.report()
    assert directive["continue"] is True
    assert directive["factors"]
    with tenant_scope(clerk.tenant):
        step = Step.objects.get()
    assert step.hint == HARMLESS
    assert step.decision == "go"
    assert step.seq == 1


def test_report_needs_a_running_execution(tenant: Any, clerk: Agent) -> None:
    assert code_of(Agent(tenant).do(services.record_step, name="clerk", hint=HARMLESS)) == "NOT_FOUND_RESOURCE"
    unknown = clerk.do(services.record_step, name="clerk", hint=HARMLESS, execution_id=uuid4())
    assert code_of(unknown) == "NOT_FOUND_RESOURCE"


@pytest.mark.parametrize(
    ("end", "status"),
    [(Agent.end, "completed"), (lambda clerk: clerk.end("failure"), "failed"), (Agent.abort, "cancelled")],
)
def test_execution_ends_once_with_its_outcome(clerk: Agent, end: Any, status: str) -> None:
    assert data(end(clerk))["status"] == status
    assert code_of(end(clerk)) == "NOT_FOUND_RESOURCE"
    assert code_of(clerk.do(services.record_step, name="clerk", hint=HARMLESS)) == "NOT_FOUND_RESOURCE"


def test_name_is_trimmed_and_its_case_does_not_matter(clerk: Agent) -> None:
    clerk.name = "  CLERK "
    assert clerk.report()["continue"] is True


def test_execution_of_another_tenant_is_not_found(clerk: Agent, other_tenant: Any) -> None:
    with tenant_scope(clerk.tenant):
        foreign = Execution.objects.get().pk
    thief = started(other_tenant, ref=clerk.principal.ref)
    reply = thief.do(services.record_step, name="clerk", hint=HARMLESS, execution_id=foreign)
    assert code_of(reply) == "NOT_FOUND_RESOURCE"


def statuses(tenant: Any) -> list[tuple[str, str]]:
    with tenant_scope(tenant):
        return sorted(Execution.objects.values_list("agent__name", "status"))


def fall_silent(clerk: Agent) -> None:
    with tenant_scope(clerk.tenant):
        Execution.objects.filter(agent__name="clerk").update(last_at=now() - timedelta(seconds=3601))


def test_idle_execution_is_over_when_the_next_begins(clerk: Agent) -> None:
    fall_silent(clerk)
    clerk.begin()
    assert statuses(clerk.tenant) == [("clerk", "cancelled"), ("clerk", "running")]


def test_silent_execution_ends_by_itself_and_another_does_not(clerk: Agent) -> None:
    started(clerk.tenant, "busy")
    fall_silent(clerk)
    carry_out_kinds(clerk.tenant, Kind.SAFETY_EXPIRY)
    assert statuses(clerk.tenant) == [("busy", "running"), ("clerk", "cancelled")]


def test_verify_pause_that_nobody_answered_leaves_the_page_and_a_block_stays(clerk: Agent) -> None:
    clerk.report(TO_VERIFY)
    other = started(clerk.tenant, "other", ref="api_key:other")
    other.report(DANGER)
    with tenant_scope(clerk.tenant):
        Challenge.objects.update(expires_at=now())
    carry_out_kinds(clerk.tenant, Kind.SAFETY_EXPIRY)
    with tenant_scope(clerk.tenant):
        assert sorted(Hold.objects.values_list("kind", "state")) == [("block", "open"), ("verify", "expired")]


def test_execution_that_reported_meanwhile_is_looked_at_when_it_may_be_silent_again(clerk: Agent) -> None:
    clerk.report()
    carry_out_kinds(clerk.tenant, Kind.SAFETY_EXPIRY)
    with tenant_scope(clerk.tenant):
        execution = Execution.objects.get()
        assert execution.status == "running"
        due_at = QueueMessage.objects.get(scope_id=f"safety_expiry:{execution.pk}").available_at
    assert due_at == execution.last_at + timedelta(seconds=3600)


def test_step_after_the_limit_pauses_and_an_approval_gives_a_new_budget(tenant: Any) -> None:
    policy(tenant, max_steps=2)
    clerk = started(tenant)
    assert [clerk.report()["continue"] for _ in range(3)] == [True, True, False]
    clerk.let_go()
    assert [clerk.report("listing files")["continue"] for _ in range(3)] == [True, True, False]


def test_allowing_more_steps_opens_the_window_of_the_principal_too(tenant: Any) -> None:
    policy(tenant, max_steps=1)
    clerk = started(tenant)
    clerk.report()
    clerk.report()
    clerk.let_go()
    clerk.begin()
    assert [clerk.report()["continue"] for _ in range(2)] == [True, False]


@pytest.mark.parametrize("end", [Agent.end, Agent.abort, None])
def test_another_execution_is_no_way_around_the_step_limit(tenant: Any, end: Any) -> None:
    policy(tenant, max_steps=2)
    clerk = started(tenant)
    went_on = 0
    for _ in range(6):
        went_on += clerk.report()["continue"] + clerk.report()["continue"]
        if end is not None:
            end(clerk)
        clerk.begin()
    assert went_on == 2


def test_another_name_is_no_way_around_the_step_limit_and_another_principal_has_its_own(tenant: Any) -> None:
    policy(tenant, max_steps=2)
    clerk = started(tenant)
    clerk.report()
    clerk.report()
    assert started(tenant, "other", ref=clerk.principal.ref).report()["continue"] is False
    assert started(tenant, "other").report()["continue"] is True


def test_rivals_under_two_names_stay_within_the_step_limit_together(tenant: Any) -> None:
    policy(tenant, max_steps=3)
    clerk = started(tenant)
    agents = [clerk, *(started(tenant, f"n{at}", ref=clerk.principal.ref) for at in range(5))]
    answers = race(*(agent.report for agent in agents))
    assert sum(answer["continue"] for answer in answers) == 3


def test_step_window_that_is_over_gives_a_new_budget(tenant: Any) -> None:
    policy(tenant, max_steps=1, step_window_seconds=60)
    clerk = started(tenant)
    clerk.report()
    with tenant_scope(tenant):
        StepWindow.objects.update(started_at=now() - timedelta(seconds=60))
    clerk.begin()
    assert clerk.report()["continue"] is True


def test_confirm_tier_pauses_and_is_told_as_a_pause(clerk: Agent) -> None:
    directive = clerk.report(TO_CONFIRM)
    assert directive["continue"] is False and "stopped" not in directive
    assert [each["type"] for each in directive["notifications"]] == ["autonomy_pause"]


def test_allowed_action_passes_once(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    clerk.let_go()
    assert clerk.report(TO_CONFIRM)["continue"] is True
    assert clerk.report(TO_CONFIRM)["continue"] is False


def test_approval_is_for_its_own_action_and_notification_is_cleared_with_its_hold(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    clerk.let_go()
    assert clerk.report(HARMLESS)["notifications"] == []
    assert clerk.report("update the price of article 5")["continue"] is False


def test_paused_agent_waits_whatever_it_reports_next_and_asks_nobody_twice(clerk: Agent) -> None:
    for hint in (TO_CONFIRM, TO_CONFIRM, HARMLESS):
        assert clerk.report(hint)["continue"] is False
    with tenant_scope(clerk.tenant):
        assert Hold.objects.count() == 1
    assert clerk.report(DANGER)["stopped"] is True


def test_verify_tier_pauses_with_a_challenge_and_stops_nobody(clerk: Agent) -> None:
    directive = clerk.report(TO_VERIFY)
    challenge = challenge_of(directive)
    assert directive["continue"] is False
    assert "stopped" not in directive
    assert challenge in directive["reason"]
    assert challenge in clerk.report(HARMLESS)["reason"]
    assert data(clerk.verify(challenge, clerk.code()))["verified"] is True
    assert clerk.report(TO_VERIFY)["continue"] is True


@pytest.mark.parametrize("end", [Agent.end, Agent.abort, None])
@pytest.mark.parametrize("name", ["clerk", "other"])
def test_verify_pause_holds_the_principal_in_every_execution_and_by_every_name(
    clerk: Agent, end: Any, name: str
) -> None:
    twin = started(clerk.tenant, "twin", ref=clerk.principal.ref)
    challenge = challenge_of(clerk.report(TO_VERIFY))
    if end is not None:
        end(clerk)
    refusal = Agent(clerk.tenant, name, ref=clerk.principal.ref).begin()
    assert code_of(refusal) == "PERMISSION_DENIED"
    assert refusal.details["verification_id"] == challenge  # type: ignore[union-attr]
    held = twin.report()
    assert held["continue"] is False
    assert challenge_of(held) == challenge


def test_verify_pause_of_another_principal_holds_nobody_else(clerk: Agent) -> None:
    clerk.report(TO_VERIFY)
    assert started(clerk.tenant, "other").report()["continue"] is True


def test_verification_after_the_end_of_its_execution_lets_the_principal_begin(clerk: Agent) -> None:
    challenge = challenge_of(clerk.report(TO_VERIFY))
    clerk.abort()
    assert data(clerk.verify(challenge, clerk.code()))["verified"] is True
    assert data(clerk.begin())["status"] == "running"
    assert clerk.report()["continue"] is True


def test_verify_pause_ends_when_its_time_is_over(clerk: Agent) -> None:
    first = challenge_of(clerk.report(TO_VERIFY))
    with tenant_scope(clerk.tenant):
        Challenge.objects.update(expires_at=now() - timedelta(microseconds=1))
    assert clerk.report(HARMLESS)["continue"] is True
    assert challenge_of(clerk.report(TO_VERIFY)) != first


def test_danger_stops_the_agent(clerk: Agent) -> None:
    directive = clerk.report(DANGER)
    assert directive["stopped"] is True
    assert directive["nextStepRisk"] == "danger_zone"
    assert directive["notifications"][0]["type"] == "danger_zone"


def test_every_operation_of_a_stopped_agent_is_refused_but_aborting_which_lifts_no_block(clerk: Agent) -> None:
    challenge = challenge_of(clerk.report(DANGER))
    begun = clerk.begin()
    assert {code_of(reply) for reply in (begun, clerk.end(), clerk.confirm(DANGER))} == {"PERMISSION_DENIED"}
    assert begun.details["verification_id"] == challenge  # type: ignore[union-attr]
    assert clerk.report(HARMLESS)["stopped"] is True
    assert data(clerk.abort())["status"] == "cancelled"
    assert code_of(clerk.begin()) == "PERMISSION_DENIED"


def test_block_follows_the_principal_to_every_name_and_reaches_no_other_of_the_same_name(clerk: Agent) -> None:
    clerk.report(DANGER)
    assert code_of(Agent(clerk.tenant, "another", ref=clerk.principal.ref).begin()) == "PERMISSION_DENIED"
    assert started(clerk.tenant, "clerk").report()["continue"] is True


def test_stop_is_told_to_every_agent_of_the_company_and_no_other(clerk: Agent, other_tenant: Any) -> None:
    colleague, foreigner = started(clerk.tenant, "colleague"), started(other_tenant)
    challenge = challenge_of(clerk.report(DANGER))
    heard = colleague.report()["notifications"]
    assert [(each["type"], each["metadata"]["verificationId"]) for each in heard] == [("danger_zone", challenge)]
    assert DANGER not in str(heard)
    assert foreigner.report()["notifications"] == []
    with tenant_scope(clerk.tenant):
        Hold.objects.update(created_at=now() - timedelta(hours=3))
    assert "3 hours ago" in colleague.report()["notifications"][0]["message"]


def test_unblocked_agent_goes_on_but_not_with_the_denied_action(clerk: Agent) -> None:
    challenge = challenge_of(clerk.report(DANGER))
    assert data(clerk.verify(challenge, clerk.code()))["unblocked_agent"] == "clerk"
    directive = clerk.report()
    assert directive["continue"] is True
    assert directive["notifications"] == []
    assert clerk.report(DANGER)["stopped"] is True


def test_person_unblocks_in_one_step_and_once(clerk: Agent) -> None:
    clerk.report(DANGER)
    hold = clerk.hold().pk
    clerk.let_go()
    assert clerk.report()["continue"] is True
    with pytest.raises(SilasError, match="already"), tenant_scope(clerk.tenant):
        allow(hold, actor="user:test")


def test_hold_of_another_tenant_is_not_found(clerk: Agent, other_tenant: Any) -> None:
    clerk.report(DANGER)
    hold = clerk.hold().pk
    with tenant_scope(other_tenant):
        for step in (allow, show_code, issue_token):
            with pytest.raises(NotFound):
                step(hold, actor="user:test")


@pytest.mark.parametrize("mode", ["monitoring", "logging", "disabled"])
def test_other_modes_hold_nobody(tenant: Any, mode: str) -> None:
    policy(tenant, mode=mode, max_steps=1, requires_approval=["*"])
    clerk = started(tenant)
    for hint in (TO_CONFIRM, TO_VERIFY, DANGER):
        directive = clerk.report(hint, outcome="failure")
        assert directive["continue"] is True
        assert "stopped" not in directive
        assert f"Mode: {mode}." in directive["factors"]
    with tenant_scope(tenant):
        assert not Hold.objects.exists()


def test_block_stands_when_the_mode_changes_and_is_no_stop_in_monitoring(clerk: Agent) -> None:
    clerk.report(DANGER)
    policy(clerk.tenant, mode="monitoring")
    directive = clerk.report()
    assert directive["continue"] is False and "stopped" not in directive


def test_own_policy_of_a_principal_beats_everybodys(tenant: Any) -> None:
    clerk = started(tenant)
    policy(tenant, deny=["*"])
    policy(tenant, principal=clerk.principal.ref, auto_approve=["*"])
    assert clerk.report(TO_CONFIRM)["continue"] is True


def test_mode_of_the_installation_beats_the_policy(tenant: Any, settings: Any) -> None:
    settings.SAFETY_MODE = "monitoring"
    assert started(tenant).report(DANGER)["continue"] is True


def test_directives_are_in_the_audit_log_without_their_hints_and_steps_are_never_rewritten(clerk: Agent) -> None:
    clerk.report(DANGER)
    with tenant_scope(clerk.tenant):
        rows = AuditEntry.objects.filter(event__startswith="safety_").order_by("seq")
        assert [row.event for row in rows] == ["safety_started", "safety_blocked", "safety_judged"]
        assert not any("drop" in str(row.data) for row in rows)
    clerk.let_go()
    clerk.report()
    with pytest.raises(Exception, match="stays"), tenant_scope(clerk.tenant):
        Step.objects.update(hint="something else")


def test_token_lifts_a_pause_once(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    token = clerk.token()
    assert data(clerk.confirm(TO_CONFIRM, token))["confirmed"] is True
    assert code_of(clerk.confirm(TO_CONFIRM, token)) == "TOKEN_ALREADY_USED"
    assert clerk.report(TO_CONFIRM)["continue"] is True


def test_unknown_and_expired_tokens_are_refused(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    token = clerk.token()
    for unknown in ("conf_nonsense", "x" * 80, "💥"):
        assert code_of(clerk.confirm(TO_CONFIRM, unknown)) == "TOKEN_INVALID"
    with tenant_scope(clerk.tenant):
        Hold.objects.update(token_expires_at=now())
    assert code_of(clerk.confirm(TO_CONFIRM, token)) == "TOKEN_EXPIRED"


def test_token_is_bound_to_its_operation_in_any_spelling_and_to_its_principal(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    token = clerk.token()
    assert code_of(clerk.confirm("update something else", token)) == "TOKEN_SCOPE_MISMATCH"
    assert code_of(started(clerk.tenant).confirm(TO_CONFIRM, token)) == "TOKEN_INVALID"
    assert data(clerk.confirm(f"  {TO_CONFIRM.upper()}\n", token))["confirmed"] is True


def test_verify_pause_gives_out_no_token(clerk: Agent) -> None:
    clerk.report(TO_VERIFY)
    with pytest.raises(SilasError, match="code"):
        clerk.token()


@pytest.mark.parametrize("may_confirm", [False, True])
def test_agent_never_confirms_for_itself(tenant: Any, may_confirm: bool) -> None:
    clerk = started(tenant, may_confirm=may_confirm)
    clerk.report(TO_CONFIRM)
    assert code_of(clerk.confirm(TO_CONFIRM)) == "PERMISSION_DENIED"
    clerk.name = "somebody else"
    assert code_of(clerk.confirm(TO_CONFIRM)) == "PERMISSION_DENIED"


def test_somebody_else_who_may_confirms_and_nobody_else(clerk: Agent) -> None:
    clerk.report(TO_CONFIRM)
    assert code_of(Agent(clerk.tenant).confirm(TO_CONFIRM)) == "NOT_FOUND_RESOURCE"
    assert data(Agent(clerk.tenant, may_confirm=True).confirm(TO_CONFIRM))["confirmed"] is True


# --- prompts: one action asks a person once


@pytest.mark.parametrize("hint", [HARMLESS, TO_CONFIRM, TO_VERIFY])
@pytest.mark.parametrize("outcome", ["", "failure"])
@pytest.mark.parametrize("asks", [{}, {"requires_approval": ["*"]}, {"max_steps": 1}, {"tolerance": "conservative"}])
def test_action_asks_a_person_once_at_most(tenant: Any, hint: str, outcome: str, asks: dict[str, Any]) -> None:
    clerk = started(tenant)
    clerk.report("listing files")
    policy(tenant, **asks)
    for _ in range(5):
        if clerk.report(hint, outcome=outcome)["continue"]:
            break
        clerk.let_go()
    else:
        pytest.fail("no yes was ever enough")
    with tenant_scope(tenant):
        assert Hold.objects.count() <= 1


@pytest.mark.parametrize("asks", [{}, {"max_steps": 1}, {"requires_approval": ["*"]}])
def test_grave_action_is_never_let_go_by_a_lighter_approval(tenant: Any, asks: dict[str, Any]) -> None:
    """A step limit or a pattern that comes first makes no mere confirmation of what takes a code."""
    clerk, other = started(tenant), Agent(tenant, may_confirm=True)
    clerk.report("listing files")
    policy(tenant, **asks)
    assert challenge_of(clerk.report(TO_VERIFY))
    assert code_of(other.confirm(TO_VERIFY, execution_id=clerk.hold().execution_id)) == "PERMISSION_DENIED"


def test_approval_from_before_the_policy_was_stricter_is_not_enough(tenant: Any) -> None:
    clerk = started(tenant)
    clerk.report(TO_CONFIRM)
    clerk.let_go()
    policy(tenant, scores=[{"pattern": "*", "score": 70}])
    assert challenge_of(clerk.report(TO_CONFIRM))
