"""Does the ladder follow from what is asked, and can nobody talk it down?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.cards.risk import SCOPE_RISK, Friction, access_risk, card_risk, friction_for, is_at_least, max_risk
from apps.approvals.enums import ApprovalScope, Risk

SCOPES, RISKS = st.sampled_from(ApprovalScope), st.sampled_from(Risk)


@given(SCOPES, RISKS, st.booleans(), st.booleans())
def test_risk_with_declared_floor_is_never_lower(scope: ApprovalScope, floor: Risk, undo: bool, destroys: bool) -> None:
    risk = card_risk(scope, reversible=undo, destroys=destroys, at_least=floor)
    assert is_at_least(risk, max_risk(floor, SCOPE_RISK[scope]))


@given(SCOPES, RISKS, RISKS, st.booleans(), st.booleans())
def test_risk_with_a_lower_declaration_is_never_higher(
    scope: ApprovalScope, one: Risk, other: Risk, undo: bool, destroys: bool
) -> None:
    lower, higher = sorted((one, other), key=list(Risk).index)
    rungs = [card_risk(scope, reversible=undo, destroys=destroys, at_least=floor) for floor in (lower, higher)]
    assert is_at_least(rungs[1], rungs[0])


@given(SCOPES, RISKS, st.booleans())
def test_risk_of_what_cannot_be_undone_is_never_lower(scope: ApprovalScope, floor: Risk, destroys: bool) -> None:
    gone, kept = (card_risk(scope, reversible=undo, destroys=destroys, at_least=floor) for undo in (False, True))
    assert is_at_least(gone, kept)


@given(SCOPES, RISKS)
def test_risk_of_what_destroys_for_good_is_irreversible(scope: ApprovalScope, floor: Risk) -> None:
    assert card_risk(scope, reversible=False, destroys=True, at_least=floor) is Risk.IRREVERSIBLE


def test_risk_is_known_for_every_scope() -> None:
    assert set(SCOPE_RISK) == set(ApprovalScope)


@pytest.mark.parametrize(
    ("scope", "reversible", "destroys", "floor", "risk"),
    [
        (ApprovalScope.SINGLE_STEP, True, False, Risk.LOW, Risk.LOW),
        (ApprovalScope.SINGLE_STEP, False, False, Risk.LOW, Risk.MEDIUM),
        (ApprovalScope.SINGLE_STEP, True, True, Risk.LOW, Risk.HIGH),
        (ApprovalScope.FULL_PLAN, True, False, Risk.LOW, Risk.MEDIUM),
        (ApprovalScope.FULL_PLAN, False, False, Risk.LOW, Risk.HIGH),
        (ApprovalScope.FULL_PLAN, False, False, Risk.HIGH, Risk.IRREVERSIBLE),
        (ApprovalScope.FULL_PLAN, False, False, Risk.IRREVERSIBLE, Risk.IRREVERSIBLE),
        (ApprovalScope.SKILL_INSTALL, True, False, Risk.LOW, Risk.MEDIUM),
        (ApprovalScope.STANDING, True, False, Risk.LOW, Risk.HIGH),
        (ApprovalScope.STANDING, False, False, Risk.LOW, Risk.IRREVERSIBLE),
        (ApprovalScope.CONNECTION_MANAGE, True, False, Risk.MEDIUM, Risk.HIGH),
    ],
)
def test_risk_of_scope_and_reversibility(
    scope: ApprovalScope, reversible: bool, destroys: bool, floor: Risk, risk: Risk
) -> None:
    assert card_risk(scope, reversible=reversible, destroys=destroys, at_least=floor) is risk


@pytest.mark.parametrize(
    ("granted", "requested", "risk"),
    [
        ([], ["Mail.Read"], Risk.MEDIUM),
        ([], ["Mail.ReadBasic", "Calendar.Read"], Risk.MEDIUM),
        ([], ["Mail.ReadWrite"], Risk.HIGH),
        ([], ["Mail.Read", "Mail.Send"], Risk.HIGH),
        (["Mail.Read"], ["Mail.ReadWrite"], Risk.MEDIUM),
        (["mail:read"], ["mail:write"], Risk.MEDIUM),
        (["Mail.Read"], ["Calendar.Read"], Risk.HIGH),
        (["Mail.Read"], ["Mail.Read", "Files.ReadWrite"], Risk.HIGH),
        ([], ["admin"], Risk.HIGH),
        ([], ["reader.write"], Risk.HIGH),
    ],
)
def test_risk_of_access_follows_what_is_reached(granted: list[str], requested: list[str], risk: Risk) -> None:
    assert access_risk(granted, requested) is risk


@pytest.mark.parametrize(
    ("risk", "has_passkey", "friction"),
    [
        (Risk.LOW, True, Friction.TAP),
        (Risk.MEDIUM, True, Friction.CONFIRM),
        (Risk.HIGH, False, Friction.SLIDE),
        (Risk.HIGH, True, Friction.SLIDE_AND_PASSKEY),
        (Risk.IRREVERSIBLE, False, Friction.SLIDE),
        (Risk.IRREVERSIBLE, True, Friction.SLIDE_AND_PASSKEY),
    ],
)
def test_friction_rises_with_the_rung(risk: Risk, has_passkey: bool, friction: Friction) -> None:
    assert friction_for(risk, has_passkey=has_passkey) is friction
