"""A company with one outside tool server, and calls of its tools as the guard makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase
from apps.guard.schemas import ApprovedCalls, Call, CallOutcome, RunRef
from apps.toolservers import queries, services
from apps.toolservers.models import OutsideTool, ToolServer
from apps.toolservers.schemas import Terms
from apps.toolservers.server_refresh import refresh_server
from kernel.tenancy import tenant_scope
from tests.fakes.tool_server import Fake, serving

READS = Terms(acting=False, risk="low", price=Decimal("0.02"), timeout=20)
ACTS = Terms(acting=True, risk="high", price=Decimal("0.5"), timeout=20)
SECRET = "b3arer-of-nothing-good"


@dataclass
class Desk:
    """`crm` is registered; what its server lists is taken over with `listed`."""

    tenant: Any
    fake: Fake
    server: ToolServer

    def listed(self) -> Desk:
        refresh_server(self.tenant.pk, self.server.pk, actor="user:1")
        return self

    def tool(self, name: str) -> OutsideTool:
        with tenant_scope(self.tenant):
            return OutsideTool.objects.get(server=self.server, name=name)

    def accept(self, name: str, terms: Terms = READS, **fields: Any) -> OutsideTool:
        tool = self.tool(name)
        with tenant_scope(self.tenant):
            digest = fields.pop("digest", tool.seen_digest)
            return services.accept_tool(tool.pk, terms, digest=digest, by=None, actor="user:1")

    @property
    def refs(self) -> tuple[str, ...]:
        with tenant_scope(self.tenant):
            return (queries.pin("mcp:crm"),)

    def call(
        self, alias: str, args: Any = None, *, acting: bool = False, approved: bool = True, **more: Any
    ) -> CallOutcome:
        """`approved`: the run carries an approval of exactly this call."""
        call = Call(
            tool=alias,
            args=args if args is not None else {"order": "A-1"},
            access=more.pop("access", frozenset({alias})),
            acting=acting,
            estimate=more.pop("estimate", Decimal("0.02")),
        )
        yes = ApprovedCalls(nonce=uuid4().hex, calls=frozenset({call.digest})) if acting and approved else None
        run = more.pop("run", None) or self.run(yes, **more)
        context = {"skills": more.get("skills") or self.refs}
        return asyncio.run(guard.guarded_call(run, Intent.CALL_MCP_TOOL, call, context=context))

    def run_with_yes(self, alias: str, args: Any = None) -> RunRef:
        digest = Call(tool=alias, args=args or {"order": "A-1"}).digest
        return self.run(ApprovedCalls(nonce=uuid4().hex, calls=frozenset({digest})))

    def run(self, approval: ApprovedCalls | None = None, **_: Any) -> RunRef:
        with tenant_scope(self.tenant):
            origin, phase = (Origin.WORK, Phase.EXECUTION) if approval else (Origin.CHAT, Phase.INTERACTIVE)
            row = guard.open_run(origin, uuid4(), deployment_id=None, phase=phase, approval=approval)
        return row.ref


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving(Fake()) as one:
        yield one


@pytest.fixture
def desk(tenant: Any, fake: Fake, settings: Any) -> Desk:
    settings.EGRESS_PRIVATE = [fake.place]
    with tenant_scope(tenant):
        server = services.add_server("crm", url=fake.url, secret=SECRET, actor="user:1")
    return Desk(tenant, fake, server)
