"""REST API of spending: limits for the tenant, its deployments, visitors and tasks, what was spent on what, and what is
paused. Owners set limits and resume; approvers read what was spent.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.guard import queries, services
from apps.guard.enums import Holder, OnLimit, Pause, Period
from apps.guard.models import Budget, ModelPrice
from apps.guard.schemas import ZERO
from apps.tenants.api_auth import (
    CHANGED_MEANWHILE,
    IF_MATCH,
    OWNERS_REFUSALS,
    OwnersView,
    RequestSerializer,
    ScopedView,
    require_unchanged,
    uncached,
    validated,
    with_etag,
)
from apps.tenants.enums import Capability, KeyScope
from apps.tenants.queries import deployment_by_id
from kernel.tenancy import tenant_scope
from llm.pricing import Rates

_SETTABLE = (Holder.TENANT, Holder.DEPLOYMENT, Holder.VISITOR, Holder.TASK)
_DIMENSIONS = {"deployment": "deployment_id", "model": "model", "purpose": "purpose"}
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: not an owner"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
_WRONG = OpenApiResponse(description="`invalid`, `bad_limit`, `bad_holder`: a field is wrong")


def _money(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=18, decimal_places=9, normalize_output=True, **options)


class PageRequest(RequestSerializer):
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


class PriceRequest(RequestSerializer):
    model = serializers.CharField(max_length=120, help_text="With its provider, such as `openai:gpt-5-mini`")
    input_per_million = _money(min_value=0, help_text="US dollars per million tokens, as in the next three")
    output_per_million = _money(min_value=0)
    cache_read_per_million = _money(
        min_value=0, default=None, allow_null=True, help_text="Read from the provider's cache; null: as other input"
    )
    cache_write_per_million = _money(
        min_value=0, default=None, allow_null=True, help_text="Written to the provider's cache; null: as other input"
    )


class PriceAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    model = serializers.CharField()
    input_per_million = _money()
    output_per_million = _money()
    cache_read_per_million = _money(allow_null=True)
    cache_write_per_million = _money(allow_null=True)
    changed_at = serializers.DateTimeField()


class SpendingPolicyFields(serializers.Serializer[Any]):
    """What happens at a limit, and what costs where no list has a price."""

    on_limit = serializers.ChoiceField(
        choices=OnLimit.values, required=False, help_text="When a limit of the company or of a deployment is reached"
    )
    visitor_daily_usd = _money(
        min_value=0, required=False, allow_null=True, help_text="What a visitor may cost a day; null: no limit"
    )
    default_input = _money(
        min_value=0,
        required=False,
        allow_null=True,
        help_text="US dollars per million input tokens of a model without a known price; null, as the next: not used",
    )
    default_output = _money(
        min_value=0, required=False, allow_null=True, help_text="The same per million output tokens"
    )


class SpendingPolicyRequest(SpendingPolicyFields, RequestSerializer):
    pass


class SpendingRequest(RequestSerializer):
    days = serializers.IntegerField(default=7, min_value=1, max_value=366, help_text="Of the company, with today")


class SpentOnDayAnswer(serializers.Serializer[Any]):
    day = serializers.DateField()
    amount_usd = _money()


class SpentOnAnswer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="A deployment's id, a model or a purpose; empty for what has none")
    amount_usd = _money()


class LimitAnswer(serializers.Serializer[Any]):
    holder = serializers.ChoiceField(choices=[holder.value for holder in _SETTABLE])
    ref = serializers.UUIDField()
    period = serializers.ChoiceField(choices=Period.values)
    window_start = serializers.DateField(source="window")
    limit_usd = _money(source="limit", allow_null=True)
    spent_usd = _money(source="spent")
    reserved_usd = _money(source="reserved")
    is_paused = serializers.BooleanField(help_text="The limit was reached, and nobody has resumed")


class PauseAnswer(serializers.Serializer[Any]):
    deployment_id = serializers.UUIDField(allow_null=True, help_text="Null: everything of the company")
    pause = serializers.ChoiceField(choices=[pause.value for pause in Pause if pause is not Pause.NONE])


class SpendingAnswer(serializers.Serializer[Any]):
    total_usd = _money()
    daily = SpentOnDayAnswer(many=True, help_text="Oldest first")
    by_deployment = SpentOnAnswer(many=True, help_text="The most expensive first, as in the next two")
    by_model = SpentOnAnswer(many=True)
    by_purpose = SpentOnAnswer(many=True)
    limits = LimitAnswer(many=True, help_text="In their current window; those of visitors are left out")
    on_limit = serializers.ChoiceField(choices=OnLimit.values, help_text="What a reached limit pauses")
    pauses = PauseAnswer(many=True, help_text="Set by an administrator; resuming does not lift them")


class ResumedAnswer(serializers.Serializer[Any]):
    resumed = serializers.IntegerField(help_text="How many limits had paused something")


class Budgets(OwnersView):
    """Every limit with what is spent and set aside in its window, and a new or changed one."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="budgets_list",
        tags=["budgets"],
        parameters=[PageRequest],
        responses={200: BudgetAnswer(many=True), **_REFUSALS, 400: _WRONG},
    )
    def get(self, request: Request) -> Response:
        page = _page_of(request)
        with tenant_scope(self.caller.tenant_id):
            rows = Budget.objects.order_by("-pk")[page]
            return uncached([_serialize(row) for row in rows])

    @extend_schema(
        operation_id="budgets_set",
        tags=["budgets"],
        request=BudgetRequest,
        responses={200: BudgetAnswer, **_REFUSALS, 400: _WRONG},
    )
    def post(self, request: Request) -> Response:
        values = validated(BudgetRequest, request.data)
        holder, ref = Holder(values["holder"]), values.get("ref")
        with tenant_scope(self.caller.tenant_id):
            if holder == Holder.DEPLOYMENT and ref is not None:
                deployment_by_id(ref)
            row = services.set_budget(
                Period(values["period"]),
                values["limit_usd"],
                holder=holder,
                ref=ref,
                actor=self.caller.actor,
                user=self.caller.user,
            )
            return uncached(_serialize(Budget.objects.get(pk=row.pk)))


class OneBudget(OwnersView):
    """Take a limit away; what was spent stays in the ledger."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(operation_id="budgets_delete", tags=["budgets"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, budget_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.remove_budget(budget_id, actor=self.caller.actor, user=self.caller.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ModelPrices(OwnersView):
    """The company's own prices of models, and a new or changed one."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="model_prices_list",
        tags=["budgets"],
        parameters=[PageRequest],
        responses={200: PriceAnswer(many=True), **_REFUSALS, 400: _WRONG},
    )
    def get(self, request: Request) -> Response:
        page = _page_of(request)
        with tenant_scope(self.caller.tenant_id):
            rows = ModelPrice.objects.order_by("model")[page]
            return uncached(PriceAnswer(rows, many=True).data)

    @extend_schema(
        operation_id="model_prices_set",
        tags=["budgets"],
        request=PriceRequest,
        responses={200: PriceAnswer, **_REFUSALS, 400: _WRONG},
    )
    def post(self, request: Request) -> Response:
        values = validated(PriceRequest, request.data)
        model = values.pop("model")
        with tenant_scope(self.caller.tenant_id):
            row = services.set_price(model, Rates(**values), actor=self.caller.actor, user=self.caller.user)
            return uncached(PriceAnswer(row).data)


class OneModelPrice(OwnersView):
    """Remove a price, so that the public list or the default price holds."""

    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(operation_id="model_prices_delete", tags=["budgets"], responses={204: None, **_REFUSALS})
    def delete(self, request: Request, price_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            services.remove_price(price_id, actor=self.caller.actor, user=self.caller.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SpendingPolicyOfCompany(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="spending_policy_get", tags=["budgets"], responses={200: SpendingPolicyFields, **OWNERS_REFUSALS}
    )
    def get(self, request: Request) -> Response:
        """Read what happens at a limit, what a visitor may cost a day, and the price of models that no list knows."""
        with tenant_scope(self.caller.tenant_id):
            return with_etag(SpendingPolicyFields(services.spending_policy()).data)

    @extend_schema(
        operation_id="spending_policy_edit",
        tags=["budgets"],
        request=SpendingPolicyRequest,
        parameters=[IF_MATCH],
        responses={200: SpendingPolicyFields, 400: _WRONG, **OWNERS_REFUSALS, **CHANGED_MEANWHILE},
    )
    def patch(self, request: Request) -> Response:
        """Change the policy from the next call that costs money; what is left out stays."""
        changes = validated(SpendingPolicyRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            require_unchanged(request, SpendingPolicyFields(services.spending_policy(lock=True)).data)
            policy = services.change_spending_policy(changes, actor=self.caller.actor, user=self.caller.user)
            return with_etag(SpendingPolicyFields(policy).data)


class Spending(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="spending_get",
        tags=["budgets"],
        parameters=[SpendingRequest],
        responses={200: SpendingAnswer, **_REFUSALS, 400: _WRONG},
    )
    def get(self, request: Request) -> Response:
        """Read what the last days cost, by day, deployment, model and purpose, the limits, and what is paused."""
        days = validated(SpendingRequest, request.query_params)["days"]
        with tenant_scope(self.caller.tenant_id):
            today = timezone.localdate()
            since = today - timedelta(days=days - 1)
            daily = queries.spent_by_day(since, today)
            pauses = queries.current_pauses()
            answer = {
                "total_usd": sum((amount for _, amount in daily), ZERO),
                "daily": [{"day": day, "amount_usd": amount} for day, amount in daily],
                "limits": queries.budget_lines(today),
                "on_limit": pauses.on_limit,
                "pauses": [
                    {"deployment_id": deployment_id, "pause": pause}
                    for deployment_id, found in pauses.controls.items()
                    for pause in sorted(found)
                ],
                **{f"by_{name}": _spent_by(column, since) for name, column in _DIMENSIONS.items()},
            }
            return uncached(SpendingAnswer(answer).data)


class ResumeSpending(OwnersView):
    reading, writing = KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE

    @extend_schema(
        operation_id="spending_resume",
        tags=["budgets"],
        request=None,
        responses={200: ResumedAnswer, 401: _REFUSALS[401], 403: _REFUSALS[403]},
    )
    def post(self, request: Request) -> Response:
        """Resume what reached limits paused. The limits stay: a call that does not fit is still refused."""
        with tenant_scope(self.caller.tenant_id):
            return uncached({"resumed": services.resume_spending(actor=self.caller.actor)})


def _page_of(request: Request) -> slice:
    query = validated(PageRequest, request.query_params)
    offset = min(max(query["offset"], 0), 10_000_000)
    return slice(offset, offset + min(max(query["limit"], 1), 200))


def _spent_by(column: str, since: date) -> list[dict[str, Any]]:
    return [{"name": str(value or ""), "amount_usd": amount} for value, amount in queries.spent_by(column, since)]


def _serialize(budget: Budget) -> dict[str, Any]:
    return {**BudgetAnswer({**vars(budget), "holder": budget.holder.value}).data}
