"""Sixty-four workers race for one approval token, and exactly one of them spends it, every time.

`SILAS_TOKEN_RACES` says how many tokens they race for: a few in every run, 200 and more when somebody wants to know.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from apps.approvals.enums import ApprovalScope, Reason
from apps.approvals.models import ApprovalToken, TokenUse
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import TEMPLATE, spawn, verify
from tests.factories.approvals import make_plan, make_token

WORKERS = 64
RACES = int(os.environ.get("SILAS_TOKEN_RACES", "5"))


@pytest.fixture(scope="module")
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WORKERS) as pool:
        yield pool


def race(workers: ThreadPoolExecutor, spend: Any) -> Counter[Reason]:
    """What sixty-four got, all let go at once. An error of one is an error of the test."""
    start = Barrier(WORKERS)

    def run(_: int) -> Reason:
        start.wait(timeout=60)
        try:
            reason: Reason = spend()
            return reason
        finally:
            connection.close()

    return Counter(workers.map(run, range(WORKERS)))


def uses(tenant: Any, token: ApprovalToken) -> int:
    with tenant_scope(tenant):
        return int(TokenUse.objects.filter(token_nonce=token.nonce).count())


@pytest.mark.slow
def test_one_of_sixty_four_gets_the_approval_every_time(tenant: Any, owner: Any, workers: ThreadPoolExecutor) -> None:
    for _ in range(RACES):
        plan = make_plan()
        token = make_token(tenant, owner, plan)
        won = race(workers, lambda: verify(tenant, token, plan))  # noqa: B023
        assert won == {Reason.OK: 1, Reason.EXECUTION_LIMIT_REACHED: WORKERS - 1}
        assert uses(tenant, token) == 1


@pytest.mark.slow
def test_standing_approval_is_spent_as_often_as_it_says(tenant: Any, owner: Any, workers: ThreadPoolExecutor) -> None:
    goal = make_plan(type="goal", failure_context=TEMPLATE, skills=["desk"])
    token = make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=5, token_seconds=3600)
    won = race(workers, lambda: verify(tenant, token, goal, spawn(tenant, goal)))
    assert won[Reason.OK] == 5
    assert uses(tenant, token) == 5
