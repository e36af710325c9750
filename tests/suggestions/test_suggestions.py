"""A suggestion runs nothing: it leads to a proposal, a plan that needs approval, or a person (spec 5.1.6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.approvals.models import ApprovalToken, Card
from apps.autonomy.enums import PrecedentState
from apps.autonomy.models import ContextProposal
from apps.autonomy.services import put_settings
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.console.pages.review.presenter import buttons_of
from apps.guard.models import GuardedRun
from apps.suggestions.enums import SuggestionState
from apps.suggestions.models import InitiativeSettings, Outcome, Suggestion
from apps.suggestions.services import outcomes, suggestions
from apps.work.models import Course, WorkItem
from apps.work.services import follow_ups
from apps.work.visitor_messages import READ_INSTRUCTIONS
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.bus import let_waits_pass
from tests.factories.proposals import (
    card_about,
    make_precedent,
    make_run,
    make_task,
    press,
    reload,
    run_trusted_messages,
)
from tests.factories.tenants import make_deployment
from tests.factories.work import Desk, Hands, make_desk, note, plan
from tests.rivals import race


@pytest.fixture
def on(tenant: Any) -> None:
    with tenant_scope(tenant):
        put_settings(actor="user:test", enabled=True)


def suggest(deployment: Any) -> list[Suggestion]:
    with tenant_scope(deployment.tenant_id):
        return suggestions.suggest_from_rows(deployment.pk)


def make_one_suggestion(deployment: Any) -> Suggestion:
    make_precedent(make_run(make_task(deployment)))
    (row,) = suggest(deployment)
    return row


def test_company_that_is_off_gets_no_suggestion(deployment: Any) -> None:
    make_precedent(make_run(make_task(deployment)))
    assert suggest(deployment) == []


def test_company_may_want_unattended_work_and_no_suggestions(on: None, tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant):
        InitiativeSettings.objects.create(suggestions=False)
    make_precedent(make_run(make_task(deployment)))
    assert suggest(deployment) == []


def test_other_company_s_patterns_are_not_suggested(on: None, other_tenant: Any, deployment: Any) -> None:
    make_precedent(make_run(make_task(make_deployment(other_tenant))))
    assert suggest(deployment) == []


def test_two_looks_at_once_suggest_once(on: None, tenant: Any, deployment: Any) -> None:
    make_precedent(make_run(make_task(deployment)))
    race(lambda: suggest(deployment), lambda: suggest(deployment))
    with tenant_scope(tenant):
        assert Suggestion.objects.count() == 1
        assert Card.objects.count() == 1


def test_card_offers_to_do_it_not_now_and_more(on: None, tenant: Any, deployment: Any) -> None:
    row = make_one_suggestion(deployment)
    words = [button.label for button in buttons_of(card_about(tenant, row.pk))]
    assert words == ["Propose it for a decision", "Remind me later", "Don't suggest this again", "Not now"]


def test_do_it_puts_a_pattern_forward_and_accepts_nothing(on: None, tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_one_suggestion(deployment).pk, owner, "approve")
    with tenant_scope(tenant):
        assert ContextProposal.objects.get().state == "proposed"
    assert reload(deployment).persona == ""


def test_do_it_mints_no_approval(on: None, tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_one_suggestion(deployment).pk, owner, "approve")
    with tenant_scope(tenant):
        assert not ApprovalToken.objects.exists()


@pytest.mark.parametrize(("choice", "state"), [("decline", "dismissed"), ("later", "deferred"), ("never", "muted")])
def test_other_answers_change_nothing_else(
    on: None, tenant: Any, deployment: Any, owner: Any, choice: str, state: str
) -> None:
    row = make_one_suggestion(deployment)
    press(tenant, row.pk, owner, choice)
    with tenant_scope(tenant):
        assert reload(row).state == state
        assert ContextProposal.objects.count() == 0


def test_answered_suggestion_is_not_made_again_soon(on: None, tenant: Any, deployment: Any, owner: Any) -> None:
    press(tenant, make_one_suggestion(deployment).pk, owner, "decline")
    assert suggest(deployment) == []


def test_pattern_that_is_gone_leads_to_nothing(on: None, tenant: Any, deployment: Any, owner: Any) -> None:
    row = make_one_suggestion(deployment)
    with tenant_scope(tenant):
        from apps.autonomy.models import Precedent

        Precedent.objects.update(state=PrecedentState.DISMISSED)
    press(tenant, row.pk, owner, "approve")
    assert reload(row).state == SuggestionState.ACCEPTED
    assert reload(row).led_to == ""


def test_hidden_characters_in_a_pattern_are_shown(on: None, tenant: Any, deployment: Any) -> None:
    make_precedent(make_run(make_task(deployment)), "Pay \u202etsuj\u200b now")
    (row,) = suggest(deployment)
    assert "\u202e" not in card_about(tenant, row.pk).intent


def scheduled_check(tenant: Any) -> QueueMessage | None:
    with tenant_scope(tenant):
        return QueueMessage.objects.filter(kind=Kind.SUGGESTION_LOOK, state="queued").first()


def run_check_now(tenant: Any) -> None:
    let_waits_pass(tenant)
    Hands(tenant).work(Queue.TRUSTED)


def test_company_is_looked_at_every_quarter_of_an_hour(on: None, tenant: Any, deployment: Any) -> None:
    make_precedent(make_run(make_task(deployment)))
    run_check_now(tenant)
    with tenant_scope(tenant):
        assert Suggestion.objects.count() == 1
    standing = scheduled_check(tenant)
    assert standing is not None
    assert timedelta(minutes=14) < standing.available_at - now() <= timedelta(minutes=15)


def test_chatbot_that_cannot_be_looked_at_stops_no_other(
    on: None, tenant: Any, deployment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = make_deployment(tenant, slug="broken")
    make_precedent(make_run(make_task(deployment)))
    look_around = suggestions.suggest_from_rows

    def stumble(deployment_id: Any) -> Any:
        if deployment_id == broken.pk:
            raise ValueError
        return look_around(deployment_id)

    monkeypatch.setattr(suggestions, "suggest_from_rows", stumble)
    run_check_now(tenant)
    with tenant_scope(tenant):
        assert Suggestion.objects.count() == 1
    assert scheduled_check(tenant) is not None


def test_company_without_unattended_work_is_looked_at_for_a_day_after_a_decision(
    tenant: Any, deployment: Any, owner: Any
) -> None:
    assert scheduled_check(tenant) is None
    with tenant_scope(tenant):
        outcomes.record_dismissal(Suggestion(deployment=deployment, action="look"), user=owner)
    run_check_now(tenant)
    assert scheduled_check(tenant) is not None
    with tenant_scope(tenant):
        Outcome.objects.update(decided_at=now() - timedelta(days=2))
    run_check_now(tenant)
    assert scheduled_check(tenant) is None


# --- after work


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def finish_work(desk: Desk, user: Any, *steps: str) -> WorkItem:
    item = desk.approved(user)
    desk.work()
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(next_steps=list(steps))
        suggestions.suggest_after_work(item.pk)
    return desk.item(item.pk)


def test_finished_work_s_next_steps_are_suggested_once_each(on: None, desk: Desk, owner: Any) -> None:
    finish_work(desk, owner, "Send a letter", "send  a LETTER", "Call back")
    with tenant_scope(desk.tenant):
        assert sorted(Suggestion.objects.values_list("intent", flat=True)) == ["Next: Call back", "Next: Send a letter"]


def accept_suggestion(desk: Desk, user: Any) -> Suggestion:
    finish_work(desk, user, "Note a number on order H-1")
    with tenant_scope(desk.tenant):
        row: Suggestion = Suggestion.objects.get()
    press(desk.tenant, row.pk, user, "approve")
    return row


def test_step_that_no_plan_does_leads_to_nothing(on: None, desk: Desk, owner: Any) -> None:
    row = accept_suggestion(desk, owner)
    run_trusted_messages(desk.tenant)
    with tenant_scope(desk.tenant):
        assert reload(row).led_to == "no_plan"
        assert WorkItem.objects.filter(status="pending").count() == 0


def test_planned_step_waits_for_an_approval_of_its_own(on: None, desk: Desk, owner: Any) -> None:
    row = accept_suggestion(desk, owner)
    with tenant_scope(desk.tenant):
        job = follow_ups.open_job(UUID(row.subject.removeprefix("work:")), "Note 60", asked_by=row.pk)
        assert job is not None
        proposal = follow_ups.propose_follow_up(job, plan(note(60)), trace_id="trace")
        follow_up = WorkItem.objects.get(pk=proposal.work_item_id)
        assert follow_up.status == "pending"
        assert follow_up.follow_up_of_id == job.item_id


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "unmarked"])
def test_card_of_a_planned_step_says_that_instructions_were_read_before(
    on: None, desk: Desk, owner: Any, is_marked: bool
) -> None:
    row = accept_suggestion(desk, owner)
    item_id = UUID(row.subject.removeprefix("work:"))
    with tenant_scope(desk.tenant):
        GuardedRun.objects.filter(owner_ref=item_id).update(content_marks=int(is_marked))
        job = follow_ups.open_job(item_id, "Note 60", asked_by=row.pk)
        assert job is not None
        proposal = follow_ups.propose_follow_up(job, plan(note(60)), trace_id="trace")
        card = Card.objects.get(subject_id=proposal.work_item_id)
    warnings = [fact["text"] for fact in card.facts if fact["label"] == "Warning"]
    assert warnings == ([READ_INSTRUCTIONS] if is_marked else [])


def test_step_may_call_no_more_than_the_work_it_follows(on: None, desk: Desk, owner: Any) -> None:
    row = accept_suggestion(desk, owner)
    with tenant_scope(desk.tenant):
        Course.objects.update(granted=["look"])
        job = follow_ups.open_job(UUID(row.subject.removeprefix("work:")), "Note 60", asked_by=row.pk)
        assert job is not None
        assert follow_ups.propose_follow_up(job, plan(note(60)), trace_id="trace").outcome == "refused"
