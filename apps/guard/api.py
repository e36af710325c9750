"""REST API of spending limits of the tenant, its deployments, visitors and tasks. For owners and their API keys."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.guard import services
from apps.guard.enums import Holder, Period
from apps.guard.models import Budget
from apps.tenants.api_auth import OwnersView, RequestSerializer
from apps.tenants.models import Deployment
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

_SETTABLE = (Holder.TENANT, Holder.DEPLOYMENT, Holder.VISITOR, Holder.TASK)
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_WRONG = OpenApiResponse(description="`invalid`, `bad_limit`, `bad_holder`: a field is wrong")


def _money(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=18, decimal_places=9, normalize_output=True, **options)


class BudgetsRequest(RequestSerializer):
    limit = serializers.IntegerField(default=50, help_text="Kept between 1 and 200")
    offset = serializers.IntegerField(default=0, help_text="Below 0 is 0")


class BudgetAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    holder = serializers.ChoiceField(choices=[holder.value for holder in _SETTABLE])
    ref = serializers.UUIDField()
    period = serializers.CharField()
    limit_usd = _money(allow_null=True)
    spent_usd = _money(source="spent")
    reserved_usd = _money(source="reserved")
    window_start = serializers.DateField(allow_null=True)


class BudgetRequest(RequestSerializer):
    holder = serializers.ChoiceField(choices=[holder.value for holder in _SETTABLE], default=Holder.TENANT.value)
    ref = serializers.UUIDField(required=False, allow_null=True, help_text="Whose; not for the company's own")
    period = serializers.ChoiceField(choices=Period.values)
    limit_usd = _money(min_value=0, help_text="0 is a limit: nothing may be spent")


class Budgets(OwnersView):
    """Every limit with what is spent and set aside in its window, and a new or changed one."""

    @extend_schema(
        operation_id="budgets_list",
        tags=["budgets"],
        parameters=[BudgetsRequest],
        responses={200: BudgetAnswer(many=True), **_REFUSALS, 400: _WRONG},
    )
    def get(self, request: Request) -> Response:
        query = BudgetsRequest(data=request.query_params)
        query.is_valid(raise_exception=True)
        offset = min(max(query.validated_data["offset"], 0), 10_000_000)
        limit = min(max(query.validated_data["limit"], 1), 200)
        with tenant_scope(self.caller.tenant_id):
            rows = Budget.objects.order_by("-pk")[offset : offset + limit]
            return _respond([_serialize(row) for row in rows])

    @extend_schema(
        operation_id="budgets_set",
        tags=["budgets"],
        request=BudgetRequest,
        responses={200: BudgetAnswer, **_REFUSALS, 400: _WRONG},
    )
    def post(self, request: Request) -> Response:
        form = BudgetRequest(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        holder, ref = Holder(values["holder"]), values.get("ref")
        with tenant_scope(self.caller.tenant_id):
            if holder == Holder.DEPLOYMENT and not Deployment.objects.filter(pk=ref).exists():
                raise NotFound()
            row = services.set_budget(
                Period(values["period"]), values["limit_usd"], holder=holder, ref=ref, actor=self.caller.actor
            )
            return _respond(_serialize(Budget.objects.get(pk=row.pk)))


class OneBudget(OwnersView):
    """Take a limit away; what was spent stays in the ledger."""

    @extend_schema(operation_id="budgets_delete", tags=["budgets"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, budget_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.remove_budget(budget_id, actor=self.caller.actor)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _serialize(budget: Budget) -> dict[str, Any]:
    return {**BudgetAnswer({**vars(budget), "holder": budget.holder.value}).data}


def _respond(data: Any) -> Response:
    return Response(data, headers={"Cache-Control": "no-store"})
