"""The life of one token as a machine: issued, spent, checked, taken back, run out, its key replaced or void.

Whatever the order, a model of five numbers says what `verify` and `check` must answer.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from apps.approvals.enums import ApprovalScope, Reason
from apps.approvals.keys.services import revoke_key, rotate_key
from apps.approvals.models import ApprovalToken, TokenUse
from apps.approvals.tokens import payloads
from apps.approvals.tokens.schemas import Approvable
from apps.approvals.tokens.services import check_token, revoke_token, verify_token
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import TEMPLATE, spawn
from tests.factories.approvals import make_plan, make_token
from tests.factories.tenants import make_member, make_tenant

SECONDS, USES = 600, 3


class LifeOfAToken(RuleBasedStateMachine):
    """A standing token of three uses and ten minutes, and the children it is spent for."""

    tenant: Any
    owner: Any
    token: ApprovalToken
    time: datetime

    @initialize()
    def issue(self) -> None:
        self.goal = make_plan(type="goal", failure_context=TEMPLATE, skills=["desk"])
        self.owner = make_member(self.tenant, "owner")
        terms = {"scope": ApprovalScope.STANDING, "max_executions": USES, "token_seconds": SECONDS}
        self.token = make_token(self.tenant, self.owner, self.goal, **terms)
        self.time = self.token.issued_at + timedelta(seconds=1)
        self.spent: list[Approvable] = []
        self.revoked = self.void = False

    @property
    def ended(self) -> Reason | None:
        """Why nothing is run any more, in the order in which it is looked at."""
        return self.taken_away or self.run_out

    @property
    def taken_away(self) -> Reason | None:
        if self.void:
            return Reason.KEY_REVOKED
        return Reason.TOKEN_REVOKED if self.revoked else None

    @property
    def run_out(self) -> Reason | None:
        return Reason.TOKEN_EXPIRED if self.time >= self.token.expires_at else None

    def at_this_time(self) -> Any:
        return time_machine.travel(self.time, tick=False)

    @rule()
    def verify(self) -> None:
        child = spawn(self.tenant, self.goal)
        full = Reason.EXECUTION_LIMIT_REACHED if len(self.spent) == USES else Reason.OK
        with self.at_this_time(), tenant_scope(self.tenant):
            found = verify_token(self.token, payloads.approvable_plan(self.goal), child).reason
        assert found is (self.run_out or self.taken_away or full)
        if found is Reason.OK:
            self.spent.append(child)

    @rule()
    def check_a_child_that_was_verified(self) -> None:
        for child in self.spent:
            assert self.check(child) is (self.ended or Reason.OK)

    @rule()
    def check_a_sibling_that_never_was(self) -> None:
        assert self.check(spawn(self.tenant, self.goal)) is (self.ended or Reason.TOKEN_NOT_CONSUMED)

    def check(self, child: Approvable) -> Reason:
        with self.at_this_time(), tenant_scope(self.tenant):
            return check_token(self.token, child).reason

    @precondition(lambda self: not self.revoked)
    @rule()
    def revoke(self) -> None:
        with self.at_this_time(), tenant_scope(self.tenant):
            revoke_token(self.token, user=self.owner, reason="No more.")
        self.revoked = True

    @rule()
    def time_passes(self) -> None:
        self.time += timedelta(seconds=SECONDS / 4)

    @rule()
    def replace_the_key(self) -> None:
        with self.at_this_time(), tenant_scope(self.tenant):
            rotate_key(self.owner, actor="user:test")

    @precondition(lambda self: not self.void)
    @rule()
    def declare_the_key_void(self) -> None:
        with self.at_this_time(), tenant_scope(self.tenant):
            rotate_key(self.owner, actor="user:test")
            revoke_key(self.token.key_id, actor="user:test")
        self.void = True

    @invariant()
    def ledger_agrees(self) -> None:
        if not hasattr(self, "spent"):
            return
        with tenant_scope(self.tenant):
            bound = set(TokenUse.objects.filter(token_nonce=self.token.nonce).values_list("bound_hash", flat=True))
        assert bound == {child.plan_hash for child in self.spent}


@pytest.mark.slow
def test_token_answers_as_its_life_says(database: None) -> None:
    LifeOfAToken.tenant = make_tenant()
    how = settings(
        max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    run_state_machine_as_test(LifeOfAToken, settings=how)
