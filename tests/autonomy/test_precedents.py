"""A pattern becomes a sentence for the bot by two decisions, and is appended once (contract autonomy A8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.autonomy.enums import ContextState, PrecedentState
from apps.autonomy.models import AutonomousSession, ContextProposal
from apps.autonomy.rules import append_line, context_text
from apps.autonomy.services import precedents
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.guard import make_run as make_guarded
from tests.factories.proposals import card_about, make_precedent, make_run, make_task, press, reload

LINE = "Seen before (habit): Refunds come with a photo"


@pytest.fixture
def run(deployment: Any) -> AutonomousSession:
    return make_run(make_task(deployment))


def decide(verb: Any, row: Any, user: Any) -> Any:
    with tenant_scope(row.tenant_id):
        return verb(row.pk, user=user)


def promote(run: AutonomousSession, user: Any) -> ContextProposal:
    rule: ContextProposal = decide(precedents.promote_precedent, make_precedent(run), user)
    return rule


@given(st.text(max_size=40), st.text(max_size=600))
def test_context_text_is_one_line_that_a_row_can_hold(kind: str, summary: str) -> None:
    text = context_text(kind, summary)
    assert len(text) <= 500
    assert text.startswith("Seen before (")


def test_first_line_has_none_before_it() -> None:
    assert append_line("", "new") == "new"
    assert append_line("old", "new") == "old\nnew"


def test_dismissed_twice_keeps_the_first_time(run: AutonomousSession, owner: Any) -> None:
    precedent = make_precedent(run)
    first = decide(precedents.dismiss_precedent, precedent, owner).dismissed_at
    assert decide(precedents.dismiss_precedent, precedent, owner).dismissed_at == first


def test_dismissed_pattern_may_come_up_anew(run: AutonomousSession, owner: Any) -> None:
    decide(precedents.dismiss_precedent, make_precedent(run), owner)
    assert make_precedent(run, count=1).state == PrecedentState.OPEN


def test_dismissed_pattern_is_not_put_forward(run: AutonomousSession, owner: Any) -> None:
    precedent = make_precedent(run)
    decide(precedents.dismiss_precedent, precedent, owner)
    with pytest.raises(SilasError, match="dismissed or quarantined"):
        decide(precedents.promote_precedent, precedent, owner)


def test_agent_puts_nothing_forward(run: AutonomousSession, agent: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        promote(run, agent)
    assert refusal.value.code == "forbidden_role"


def test_pattern_put_forward_tells_the_bot_nothing_yet(run: AutonomousSession, owner: Any, deployment: Any) -> None:
    promote(run, owner)
    assert reload(deployment).persona == ""


def test_pattern_put_forward_twice_is_asked_about_once(run: AutonomousSession, owner: Any) -> None:
    precedent = make_precedent(run)
    first = decide(precedents.promote_precedent, precedent, owner)
    assert decide(precedents.promote_precedent, precedent, owner).pk == first.pk


def test_card_says_what_the_bot_will_be_told(
    tenant: Any, run: AutonomousSession, approver: Any, deployment: Any
) -> None:
    rule = promote(run, approver)
    press(tenant, rule.pk, approver, "accept")
    assert reload(deployment).persona == LINE
    assert reload(rule).state == ContextState.ACCEPTED


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "unmarked"])
def test_card_says_that_the_session_had_read_instructions(
    run: AutonomousSession, owner: Any, tenant: Any, is_marked: bool
) -> None:
    make_guarded(tenant, owner_ref=run.pk, marked=is_marked)
    card = card_about(tenant, promote(run, owner).pk)
    assert [fact["label"] for fact in card.facts] == [*(["Warning"] if is_marked else []), "Exact text"]


def test_declined_card_tells_the_bot_nothing(tenant: Any, run: AutonomousSession, owner: Any, deployment: Any) -> None:
    rule = promote(run, owner)
    press(tenant, rule.pk, owner, "decline")
    assert reload(deployment).persona == ""
    assert reload(rule).state == ContextState.REJECTED
