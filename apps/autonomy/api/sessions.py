"""API views of sessions: list, read, receipt, halt and retry; and what is left of limits."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import queries, receipts, services
from apps.autonomy.api.requests import acting_user, require_switched_on
from apps.autonomy.api.serializers import (
    INVALID,
    REFUSALS,
    START_REFUSALS,
    HaltAnswer,
    LeftAnswer,
    SessionAnswer,
    SessionsRequest,
)
from apps.autonomy.api.tasks import spawn_response
from apps.autonomy.enums import SessionStatus
from apps.autonomy.models import AutonomousSession
from apps.guard.models import Budget
from apps.tenants.api_auth import Caller, MembersView, uncached, validated
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.queries import role_of
from apps.tenants.rules import roles_with
from kernel.tenancy import current_tenant_id, tenant_scope


class Sessions(MembersView):
    """All sessions, newest first."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="autonomous_sessions_list",
        tags=["autonomous-sessions"],
        parameters=[SessionsRequest],
        responses={200: SessionAnswer(many=True), **REFUSALS, 400: INVALID[400]},
    )
    def get(self, request: Request) -> Response:
        query = validated(SessionsRequest, request.query_params)
        task_id = query.pop("task", None)
        with tenant_scope(self.caller.tenant_id):
            rows = queries.sessions(task_id=task_id, **query)
            return uncached([SessionAnswer(row).data for row in rows])


class SessionDetail(MembersView):
    """One session."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="autonomous_sessions_read",
        tags=["autonomous-sessions"],
        responses={200: SessionAnswer, **REFUSALS},
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(SessionAnswer(queries.session(session_id)).data)


class Receipt(MembersView):
    """The receipt of a session: live while it runs, as stored once it is over."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="autonomous_sessions_receipt",
        tags=["autonomous-sessions"],
        responses={200: OpenApiTypes.OBJECT, **REFUSALS},
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            session = queries.session(session_id)
            return uncached(session.receipt or receipts.build_receipt(session))


class Halt(MembersView):
    """Ask a session to stop. Answered at once, even during a model call; needs no opt-in, and is safe to repeat."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(
        operation_id="autonomous_sessions_halt",
        tags=["autonomous-sessions"],
        request=None,
        responses={200: HaltAnswer, **REFUSALS},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            halting = services.halt_session(session_id, user=acting_user(self.caller))
            session = queries.session(session_id)
            state = session.run.halt_state if session.run else "running"
            return uncached(HaltAnswer({"halting": halting, "status": session.status, "halt_state": state}).data)


class Retry(MembersView):
    """Repeat a finished session from the beginning, as a new session."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE
    recognises_repeats = True

    @extend_schema(
        operation_id="autonomous_sessions_retry",
        tags=["autonomous-sessions"],
        request=None,
        responses={201: SessionAnswer, **REFUSALS, **START_REFUSALS},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            queries.session(session_id)
            require_switched_on()
            spawn = services.retry_session(session_id, user=acting_user(self.caller), once=self.once)
        return spawn_response(self, spawn)


class TasksBudget(MembersView):
    """What each running session has left, and for members who decide, what the company has (spec 003)."""

    reading, writing = KeyScope.AUTOMATIONS_READ, KeyScope.AUTOMATIONS_WRITE

    @extend_schema(operation_id="tasks_budget", tags=["tasks"], responses={200: LeftAnswer, **REFUSALS})
    def get(self, request: Request) -> Response:
        with tenant_scope(self.caller.tenant_id):
            company = list(Budget.objects.filter(ref=current_tenant_id()).order_by("period"))
            running = queries.sessions(status=SessionStatus.RUNNING, limit=200)
            data = {
                "enabled": queries.autonomy_settings().enabled,
                "paused": any(
                    budget.paused_in is not None and budget.paused_in == budget.window_start for budget in company
                ),
                "company": [_company(budget) for budget in company] if _sees_money(self.caller) else [],
                "running": [_left(session) for session in running],
            }
            return uncached(LeftAnswer(data).data)


def _sees_money(caller: Caller) -> bool:
    """As the console's spending page; an API key may do what owners may."""
    return caller.user is None or role_of(caller.user) in roles_with(Capability.DECIDE)


def _company(budget: Budget) -> dict[str, Any]:
    amounts = {"limit_usd": budget.limit_usd, "spent_usd": budget.spent, "reserved_usd": budget.reserved}
    return {"period": budget.period, **amounts}


def _left(session: AutonomousSession) -> dict[str, Any]:
    run = session.run
    return {
        "session": session.pk,
        "task": session.task_id,
        "cost_total_usd": run.cost_total if run else 0,
        "cost_reserved_usd": run.cost_reserved if run else 0,
        "left": queries.budget_left(session).model_dump(mode="json", exclude_none=True),
    }
