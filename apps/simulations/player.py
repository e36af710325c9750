"""Play one scenario in the isolated copy, and judge it by what the copy's rows say afterwards."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import OPEN_STATUSES, Card
from apps.sessions.models import ChatSession
from apps.simulations import conversation, copies, model_visitor, rules
from apps.simulations.conversation import Played
from apps.simulations.enums import Ending, Player, Reviewer
from apps.simulations.models import Scenario
from apps.simulations.schemas import AnsweredCheck, Check, Line, RecordCheck, Said
from apps.skills.models import Record
from apps.tenants.models import Deployment
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from apps.work.queries import open_items_of
from apps.work.services import cancel_for_visitor
from kernel.tenancy import in_scope
from llm.failures import ShapeBroken

LOOK_SECONDS = 0.25
UNDER_WAY = (WorkItemStatus.PENDING, WorkItemStatus.RUNNING, WorkItemStatus.PAUSED)


@dataclass(frozen=True)
class Judged:
    """What came of a scenario: passed when `failures` is empty. `player` is the model that played the visitor, if one
    did, and `ending` why it stopped. `cost_usd` is for both sides."""

    session_id: UUID
    said: list[Said]
    failures: list[str]
    cost_usd: Decimal
    player: str = ""
    ending: Ending | None = None


class BrokeOff(Exception):
    """Playing broke off because of `error`; `cost_usd` is what both sides had cost until then."""

    def __init__(self, error: Exception, cost_usd: Decimal) -> None:
        super().__init__(str(error))
        self.error, self.cost_usd = error, cost_usd


async def play(target: Deployment, scenario: Scenario, *, model: str = "", budget_usd: Decimal | None = None) -> Judged:
    """Hold the conversation in the copy and judge it; what it left open is called off, so that the next one finds the
    customer as this one did. `model` plays the visitor of a scenario that asks for one; without it the lines are said.

    Raises `model_visitor.PlayerFailed` when the model can't be used, `BrokeOff`.
    """
    played = await conversation.begin(target)
    try:
        if scenario.player == Player.MODEL and model:
            return await _play_by_model(target, scenario, played, model, budget_usd)
        if not scenario.lines:
            raise model_visitor.PlayerFailed("no_model")
        for line in scenario.script:
            await _say(target, scenario, played, line)
        facts = await in_scope(target.tenant_id, _facts, played, scenario.judged_by)
        failures = [*played.misses, *rules.failures(scenario.judged_by, facts)]
        return Judged(played.session_id, played.said, failures, facts.cost_usd)
    except model_visitor.PlayerFailed as failure:
        failure.cost_usd = await in_scope(target.tenant_id, _cost_of_both, played)
        raise
    except Exception as error:
        raise BrokeOff(error, await in_scope(target.tenant_id, _cost_of_both, played)) from error
    finally:
        await in_scope(target.tenant_id, call_off, played.session_id)


async def _play_by_model(
    target: Deployment, scenario: Scenario, played: Played, model: str, budget_usd: Decimal | None
) -> Judged:
    visitor = await model_visitor.enter(target, scenario, model, budget_usd=budget_usd)
    played.visitor_run_id = visitor.run.run_id
    ending: Ending | None = Ending.TURN_LIMIT
    try:
        for _ in range(scenario.most_turns):
            move = await visitor.next_move(played.said)
            if isinstance(move, Ending):
                ending = move
                break
            await _say(target, scenario, played, Line(say=move), judge=False)
            spent = await in_scope(target.tenant_id, _cost_of_both, played)
            if budget_usd is not None and spent >= budget_usd:
                ending = Ending.BUDGET
                break
    except ShapeBroken:
        ending = None
        played.misses.append("the visitor's model gave no usable reply")
    finally:
        await visitor.leave()
    checks = [*scenario.judged_by, AnsweredCheck()]
    facts = await in_scope(target.tenant_id, _facts, played, checks)
    # Checks of absence hold for a conversation in which nothing was said.
    silent = [] if played.said else ["the visitor said nothing"]
    return Judged(
        session_id=played.session_id,
        said=played.said,
        failures=[*silent, *played.misses, *rules.failures(checks, facts)],
        cost_usd=await in_scope(target.tenant_id, _cost_of_both, played),
        player=model,
        ending=ending,
    )


def _cost_of_both(played: Played) -> Decimal:
    return conversation.cost_of(played.session_id) + conversation.cost_of_run(played.visitor_run_id)


async def _say(target: Deployment, scenario: Scenario, played: Played, line: Line, *, judge: bool = True) -> None:
    """Say the line. Where the scenario has a reviewer, the cards are answered and the work that may begin is waited
    for: workers of the installation carry it out, on the copy's records."""
    await conversation.exchange(target, played, line, judge=judge)
    reviewer = Reviewer(scenario.reviewer)
    if reviewer == Reviewer.NONE:
        return
    give_up = time.monotonic() + settings.SIMULATION_WORK_SECONDS
    while await in_scope(target.tenant_id, _answer_cards, target, played.session_id, reviewer):
        if time.monotonic() >= give_up:
            number = len(played.outcomes)
            played.misses.append(f"turn {number}: work wasn't done in {settings.SIMULATION_WORK_SECONDS:g} seconds")
            return
        await asyncio.sleep(LOOK_SECONDS)


def _answer_cards(target: Deployment, session_id: UUID, reviewer: Reviewer) -> bool:
    """The scripted reviewer answers the open cards about this conversation's work; returns whether work goes on."""
    verdict = ApprovalVerdict.APPROVED if reviewer == Reviewer.APPROVE else ApprovalVerdict.DECLINED
    work = WorkItem.objects.filter(session_id=session_id).values_list("pk", flat=True)
    for card in Card.objects.filter(subject_id__in=list(work), status__in=OPEN_STATUSES):
        decide_card(card.pk, user=copies.reviewer_of(target), verdict=verdict)
    return WorkItem.objects.filter(pk__in=list(work), status__in=UNDER_WAY).exists()


def _facts(played: Played, checks: list[Check]) -> rules.Facts:
    session = ChatSession.objects.get(pk=played.session_id)
    wanted = {(check.book, check.key) for check in checks if isinstance(check, RecordCheck)}
    rows = Record.objects.filter(book__in={book for book, _ in wanted}) if wanted else Record.objects.none()
    work = WorkItem.objects.filter(session_id=played.session_id).values_list("pk", flat=True)
    return rules.Facts(
        said=played.said,
        records={(row.book, row.key): row.data for row in rows if (row.book, row.key) in wanted},
        cards=Card.objects.filter(subject_id__in=list(work)).count(),
        level=session.level,
        person=session.wanted_person_at is not None,
        cost_usd=conversation.cost_of(played.session_id),
    )


def call_off(session_id: UUID) -> None:
    """Cancel what the conversation asked for and is not done; inside the copy's scope."""
    session = ChatSession.objects.get(pk=session_id)
    for item in open_items_of(subject=session.whose, session_id=session_id):
        if item.session_id == session_id and item.requested_by == "visitor" and not item.is_part:
            cancel_for_visitor(item.pk, session_id=session_id, subject=item.subject)
