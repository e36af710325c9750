"""Measure the cost of spending an approval, and of checking whether it is still valid.

Goals: `verify`, which spends and commits, at most three times a transaction with one locked UPDATE and one
INSERT; `check` at most 1.5 times a bare Ed25519 verification plus one indexed SELECT. Ours and the baseline take turns,
each counts with its middle time. The bare SELECT is asked inside the same open scope, since row security hides the key
from anybody else.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import uuid4

from bench.bare import stock
from bench.report import Row
from bench.stage import stage

TOKENS, CHECKS = 400, 2000
WARM = 50
MOST_VERIFY, MOST_CHECK = 3.0, 1.5
TABLE = "CREATE TABLE bench_counter (id int PRIMARY KEY, n int NOT NULL); INSERT INTO bench_counter VALUES (1, 0)"
UPDATE = "UPDATE bench_counter SET n = n + 1 WHERE id = 1"
INSERT = "INSERT INTO bench_echo (said) VALUES (%s)"
SELECT = "SELECT public_key FROM approvals_approverkey WHERE key_id = %s AND tenant_id = %s"


def run() -> list[Row]:
    with stage() as ready:
        _table()
        tenant = ready.deployment.tenant_id
        approved = [_approved(tenant, owner) for owner in [_owner(tenant)] for _ in range(TOKENS)]
        return [_verify(tenant, approved), _check(tenant, approved[0])]


def _table() -> None:
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        cursor.execute(TABLE)


def _owner(tenant: Any) -> Any:
    from apps.tenants.models import Membership, User
    from kernel.tenancy import tenant_scope

    user = User.objects.create_user("owner@bench.test", "a-long-password")
    with tenant_scope(tenant):
        Membership.objects.create(user=user, role="owner")
    return user


@cache
def _register_subject() -> None:
    from apps.approvals.enums import CardKind
    from apps.approvals.registry import on_card

    on_card(CardKind.PLAN, "bench", decided=lambda card, decision, token: None)


def _approved(tenant: Any, owner: Any) -> tuple[Any, Any]:
    """An unspent token, and what it is for."""
    from apps.approvals.cards.schemas import Binding, CardSubject, CardText
    from apps.approvals.cards.services import decide_card, open_card
    from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind
    from apps.approvals.tokens import payloads
    from apps.work.schemas import WorkItemSpec
    from kernel.tenancy import tenant_scope

    _register_subject()
    plan = WorkItemSpec(id=str(uuid4()), type="task", title="Change the address", body="Do it.").as_plan()
    with tenant_scope(tenant):
        card = open_card(
            CardKind.PLAN,
            subject=CardSubject("bench", uuid4()),
            binding=Binding(ApprovalScope.FULL_PLAN, plan, reversible=True),
            text=CardText(
                intent="Change the address",
                rationale="The customer asked for it.",
                consequence={"approve": "Change the address", "decline": "Keep the address"},
            ),
        )
        decision = decide_card(card.pk, user=owner, verdict=ApprovalVerdict.APPROVED)
        assert decision is not None
        return decision.token, payloads.approvable_plan(plan)


def _verify(tenant: Any, approved: list[tuple[Any, Any]]) -> Row:
    from apps.approvals.tokens.services import verify_token
    from kernel.tenancy import tenant_scope

    def ours(at: int) -> None:
        token, subject = approved[at]
        with tenant_scope(tenant):
            assert verify_token(token, subject).ok

    value, baseline = _in_turns(ours, _bare_transaction, len(approved))
    return _row("verify, committed", value, baseline, "one locked UPDATE + one INSERT", MOST_VERIFY)


def _bare_transaction(_: int) -> None:
    from django.db import connections, transaction

    with transaction.atomic(using=stock()), connections[stock()].cursor() as cursor:
        cursor.execute(UPDATE)
        cursor.execute(INSERT, ["bench"])


def _check(tenant: Any, approved: tuple[Any, Any]) -> Row:
    """Both inside one open scope: `check` is one step of a transaction that has others."""
    from apps.approvals.tokens.services import check_token
    from kernel.tenancy import tenant_scope

    token, subject = approved
    bare = _bare_check(tenant, token)

    def ours(_: int) -> None:
        assert check_token(token, subject).ok

    with tenant_scope(tenant):
        value, baseline = _in_turns(ours, bare, CHECKS)
    return _row("check", value, baseline, "bare Ed25519 + one indexed SELECT", MOST_CHECK)


def _bare_check(tenant: Any, token: Any) -> Callable[[int], None]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from django.db import connection

    from apps.approvals.rules import signed_bytes
    from apps.approvals.tokens.schemas import SignedToken

    signed = SignedToken.of_row(token)
    message, signature = signed_bytes(signed), signed.signature

    def bare(_: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute(SELECT, [token.key_id, tenant])
            (public,) = cursor.fetchone()
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, message)

    return bare


def _in_turns(ours: Callable[[int], None], bare: Callable[[int], None], count: int) -> tuple[float, float]:
    """The middle time of each in milliseconds; the first few warm up and do not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for at in range(count):
        for spent, step in zip(times, (ours, bare), strict=True):
            begun = time.perf_counter()
            step(at)
            spent.append((time.perf_counter() - begun) * 1000)
    value, baseline = (statistics.median(spent[WARM:]) for spent in times)
    return value, baseline


def _row(name: str, value: float, baseline: float, baseline_name: str, most: float) -> Row:
    ratio = value / baseline
    return Row(name, value, "ms", baseline_name, baseline, ratio, f"≤ {most:g}", ratio <= most)
