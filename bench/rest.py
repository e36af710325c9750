"""Measure REST reads beside their bare queries, in a company with 100,000 conversations and 1,000 open cards.

Each address is answered by this process itself, through middleware, authentication by API key, permission check and
serialization. The baseline is every statement of that request, executed again through a plain cursor in the scope of
the tenant, rows fetched. Goal: p95 of the answer at most three times p95 of its queries.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.console import Company, seed
from bench.report import Row
from bench.stage import servers

WARM, ROUNDS, MOST = 5, 60, 3.0
PATHS = {
    "conversations": "/api/v1/sessions",
    "a conversation": "/api/v1/sessions/{session}",
    "its messages": "/api/v1/sessions/{session}/messages",
    "cards": "/api/v1/cards",
    "a card": "/api/v1/cards/{card}",
    "audit log": "/api/v1/audit",
    "deployments": "/api/v1/deployments",
}
Statement = tuple[str, Any]


def run() -> list[Row]:
    with servers({"ALLOWED_HOSTS": "127.0.0.1,testserver", "SILAS_API_REQUESTS_A_MINUTE": "1000000"}):
        company = Company("rest")
        seed(company)
        key = _api_key(company)
        return [_row(name, company, path, key) for name, path in PATHS.items()]


def _api_key(company: Company) -> str:
    from apps.tenants.services import create_api_key
    from kernel.tenancy import tenant_scope

    with tenant_scope(company.tenant):
        return create_api_key("Bench").key


def _row(name: str, company: Company, path: str, key: str) -> Row:
    address = path.format(session=company.session.pk, card=company.card.pk)

    def ask() -> None:
        answer = company.client.get(address, secure=True, HTTP_HOST="127.0.0.1", HTTP_AUTHORIZATION=f"Bearer {key}")
        if answer.status_code != 200:
            raise RuntimeError(f"{address}: {answer.status_code}")

    statements = _statements_of(ask)
    found, bare = _p95_of(ask, lambda: _execute(company, statements))
    return Row(
        f"REST read, {name}, p95",
        found,
        "ms",
        f"its {len(statements)} queries",
        bare,
        found / bare,
        "≤ 3",
        found <= MOST * bare,
    )


def _statements_of(ask: Callable[[], None]) -> list[Statement]:
    """The reading statements of one request."""
    from django.db import connection

    heard: list[Statement] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(("SELECT", "WITH")):
            heard.append((sql, params))
        return execute(sql, params, many, context)

    ask()
    with connection.execute_wrapper(listen):
        ask()
    return heard


def _execute(company: Company, statements: Sequence[Statement]) -> None:
    from django.db import connection

    from kernel.tenancy import tenant_scope

    with tenant_scope(company.tenant), connection.cursor() as cursor:
        for sql, params in statements:
            cursor.execute(sql, params)
            cursor.fetchall()


def _p95_of(*ways: Callable[[], None]) -> list[float]:
    """p95 of each in ms, taken in turns, so that a slow second of the machine meets all."""
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(WARM + ROUNDS):
        for way, own in zip(ways, times, strict=True):
            started = time.perf_counter()
            way()
            own.append((time.perf_counter() - started) * 1000)
    return [sorted(own[WARM:])[math.ceil(0.95 * ROUNDS) - 1] for own in times]
