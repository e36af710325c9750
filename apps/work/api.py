"""REST API of work: tasks, projects and goals with their plan, attempts, receipts and independent checks; cancel and
resume, and change a planned task's values before its approval.

For members and API keys without scopes; cancelling and resuming is for members who answer visitors. Nothing here
approves work.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.approvals.api import CardDetail, card_detail, person_of
from apps.approvals.cards.schemas import ClientSignature
from apps.approvals.enums import CardStatus
from apps.approvals.queries import get_card, latest_card_about
from apps.tenants.api_auth import (
    MembersView,
    PageRequest,
    PlaceAnswer,
    RequestSerializer,
    ScopedView,
    uncached,
    validated,
)
from apps.tenants.enums import Capability, KeyScope
from apps.work import queries, services
from apps.work.enums import AttemptStatus, CycleOutcome, WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import Attempt
from apps.work.queries import WorkFilter
from kernel.clock import now
from kernel.tenancy import tenant_scope

MOST_CYCLES = 50
_REASONS = ", ".join(f"`{reason}`" for reason in WorkReason.values if reason)
_REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`: this role may not; `forbidden_scope`: the key has scopes"),
}
_INVALID: dict[int, Any] = {400: OpenApiResponse(description="`invalid`: a field is wrong")}
_MISSING: dict[int, Any] = {404: OpenApiResponse(description="`not_found`: unknown or foreign")}


class WorkItemsRequest(PageRequest):
    status = serializers.ChoiceField(choices=WorkItemStatus.choices, required=False)
    reason = serializers.ChoiceField(
        choices=[choice for choice in WorkReason.choices if choice[0]], required=False, help_text="Why it stopped"
    )
    type = serializers.ChoiceField(choices=WorkItemType.choices, required=False)
    deployment = serializers.UUIDField(required=False)
    session = serializers.UUIDField(required=False, help_text="The conversation that it came from")
    # A serializer has a parent of its own, which is not this field.
    parent = serializers.UUIDField(  # type: ignore[assignment]  # hides the serializer's own attribute
        required=False, help_text="The tasks of this project, or of this goal"
    )


class WorkItemLine(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    type = serializers.ChoiceField(choices=WorkItemType.choices)
    title = serializers.CharField()
    status = serializers.ChoiceField(choices=WorkItemStatus.choices)
    reason = serializers.CharField(help_text=f"Why it stopped: {_REASONS}, or empty")
    deployment = PlaceAnswer(allow_null=True)
    session_id = serializers.UUIDField(allow_null=True, help_text="The conversation that it came from")
    parent_id = serializers.UUIDField(allow_null=True)
    follow_up_of_id = serializers.UUIDField(allow_null=True)
    customer = serializers.CharField(source="subject", help_text="The verified customer's id; empty if unknown")
    requested_by = serializers.CharField(help_text="`visitor`, `user:…`, `goal:…` or `system`")
    plan_hash = serializers.CharField(help_text="What an approval binds")
    attempts_made = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    due_at = serializers.DateTimeField(allow_null=True, help_text="When a scheduled goal is checked next")


class CheckAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    passed = serializers.BooleanField()
    reason = serializers.CharField()


class VerificationAnswer(serializers.Serializer[Any]):
    passed = serializers.BooleanField(source="all_passed")
    checks = CheckAnswer(many=True, source="results")
    ran_at = serializers.DateTimeField()


class ReceiptAnswer(serializers.Serializer[Any]):
    tool = serializers.CharField()
    call_id = serializers.UUIDField(allow_null=True, help_text="The guarded call; null if it was not made")
    args_digest = serializers.CharField(help_text="SHA-256 of its arguments as canonical JSON")
    success = serializers.BooleanField()
    error = serializers.CharField()
    changed = serializers.JSONField(source="left", help_text="The records that it changed, with their revision")
    cost_usd = serializers.DecimalField(max_digits=18, decimal_places=9)
    seconds = serializers.FloatField(source="duration_seconds")
    at = serializers.DateTimeField(source="created_at")


class AttemptAnswer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    status = serializers.ChoiceField(choices=AttemptStatus.choices)
    model = serializers.CharField(source="model_name")
    summary = serializers.CharField(help_text="Written by the model")
    error = serializers.CharField()
    files = serializers.ListField(child=serializers.CharField(), source="artifacts")
    used = serializers.DictField()
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    receipts = ReceiptAnswer(many=True, source="ledger", help_text="The calls that it made, in order")
    verification = serializers.SerializerMethodField(help_text="The independent checks; null before they ran")

    @extend_schema_field(VerificationAnswer(allow_null=True))
    def get_verification(self, attempt: Attempt) -> Any:
        return VerificationAnswer(attempt.verification).data if hasattr(attempt, "verification") else None


class CycleAnswer(serializers.Serializer[Any]):
    due_at = serializers.DateTimeField()
    ran_at = serializers.DateTimeField()
    outcome = serializers.ChoiceField(choices=CycleOutcome.choices)
    checks = CheckAnswer(many=True, source="results")
    repair_id = serializers.UUIDField(source="spawned_id", allow_null=True, help_text="The task that it started")


class WorkCardAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=CardStatus.choices)


class WorkItemDetail(WorkItemLine):
    last_error = serializers.CharField()
    summary = serializers.CharField()
    plan = serializers.DictField(source="spec.as_plan", help_text="Exactly what an approval binds")
    used = serializers.DictField(source="budget_used", help_text="Of the limits in `plan.budget`")
    token_id = serializers.UUIDField(
        source="approval_token_id", allow_null=True, help_text="The approval it runs under"
    )
    card = WorkCardAnswer(allow_null=True, help_text="The newest card about it, see `/api/v1/cards/{id}`")
    tasks = WorkItemLine(many=True, help_text="The tasks of a project, in its order")
    attempts = AttemptAnswer(many=True, source="numbered")
    checks = CycleAnswer(many=True, source="newest_cycles", help_text="The newest 50 checks of a goal")
    files = serializers.ListField(child=serializers.CharField(), help_text="Names of the files that its calls left")
    may_cancel = serializers.BooleanField(source="is_cancellable")
    may_resume = serializers.BooleanField(source="is_resumable")


class WorkItemsAnswer(serializers.Serializer[Any]):
    work_items = WorkItemLine(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class WorkItems(MembersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="work_items_list",
        tags=["work-items"],
        parameters=[WorkItemsRequest],
        responses={200: WorkItemsAnswer, **_REFUSALS, **_INVALID},
    )
    def get(self, request: Request) -> Response:
        """List tasks, projects and goals, newest first. The tasks of a project are listed by `parent`."""
        values = validated(WorkItemsRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        for name, enum in (("status", WorkItemStatus), ("reason", WorkReason), ("type", WorkItemType)):
            if name in values:
                values[name] = enum(values[name])
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.list_items(WorkFilter(**values), before=before, limit=limit)
            return uncached(WorkItemsAnswer({"work_items": rows, "next": following}).data)


class OneWorkItem(MembersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="work_items_get", tags=["work-items"], responses={200: WorkItemDetail, **_REFUSALS, **_MISSING}
    )
    def get(self, request: Request, item_id: UUID) -> Response:
        """Read an item with its plan, attempts, receipts and checks."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(_detail(item_id))


class PlannedCallRequest(RequestSerializer):
    tool = serializers.CharField(max_length=200)
    args = serializers.DictField()


class CardEditRequest(RequestSerializer):
    calls = serializers.ListField(
        child=PlannedCallRequest(), max_length=200, help_text="All calls of the card's `details.calls`, with new values"
    )
    key_id = serializers.CharField(max_length=16, default="", allow_blank=True, help_text="A program's key")
    answered_at = serializers.DateTimeField(
        required=False, default=None, help_text="The time that you signed; within five minutes of now"
    )
    signature = serializers.CharField(max_length=120, default="", allow_blank=True, help_text="Ed25519, base64")


class EditCard(ScopedView):
    capability = Capability.DECIDE
    reading, writing = KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE

    @extend_schema(
        operation_id="cards_edit",
        tags=["cards"],
        request=CardEditRequest,
        responses={
            201: CardDetail,
            400: OpenApiResponse(description="`invalid`; `edit_changes_nothing`, `edit_outside_plan`"),
            403: OpenApiResponse(description="`signature_invalid`, `client_key_rights`; `forbidden_scope`"),
            **_MISSING,
            409: OpenApiResponse(
                description="`edit_unfit`: no planned task, or other calls; `edit_refused`: these values aren't"
                " allowed; `card_decided`, `card_expired`, `card_withdrawn`, `card_changed`, `answered_already`,"
                " `signature_stale`"
            ),
        },
    )
    def post(self, request: Request, card_id: UUID) -> Response:
        """Change the values of a planned task's calls before it is approved; returns the card that takes the old one's
        place and has to be approved. A program signs this as its answer `edit_requested`."""
        values = validated(CardEditRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            user, key = person_of(self.caller, values["key_id"])
            signature = None
            if key is not None:
                signature = ClientSignature(key, values["answered_at"] or now(), values["signature"])
            card = services.edit_plan(card_id, user=user, calls=values["calls"], signature=signature)
            return uncached(card_detail(get_card(card.pk)), status.HTTP_201_CREATED)


class CancelWorkItem(MembersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="work_items_cancel",
        tags=["work-items"],
        request=None,
        responses={
            200: WorkItemDetail,
            **_REFUSALS,
            **_MISSING,
            409: OpenApiResponse(description="`not_cancellable`: a goal; `work_settled`: it has ended"),
        },
    )
    def post(self, request: Request, item_id: UUID) -> Response:
        """Cancel a task or project: at once if nothing runs, else at its next call. What took effect stays."""
        with tenant_scope(self.caller.tenant_id):
            services.cancel_for_staff(item_id, user=self.caller.user, actor=self.caller.actor)
            return uncached(_detail(item_id))


class ResumeWorkItem(MembersView):
    reading, writing = KeyScope.WORK_READ, KeyScope.WORK_WRITE

    @extend_schema(
        operation_id="work_items_resume",
        tags=["work-items"],
        request=None,
        responses={
            200: WorkItemDetail,
            **_REFUSALS,
            **_MISSING,
            409: OpenApiResponse(description="`not_parked`: not a goal whose budget is used up"),
        },
    )
    def post(self, request: Request, item_id: UUID) -> Response:
        """Resume a parked goal with its whole budget."""
        with tenant_scope(self.caller.tenant_id):
            services.resume_goal(item_id, user=self.caller.user, actor=self.caller.actor)
            return uncached(_detail(item_id))


def _detail(item_id: UUID) -> Any:
    item = queries.work_item(item_id)
    is_goal = item.type == WorkItemType.GOAL
    item.__dict__.update(
        card=latest_card_about("work_item", item.pk),
        tasks=queries.children_of(item) if item.type == WorkItemType.PROJECT else [],
        numbered=queries.attempts_of(item),
        newest_cycles=list(queries.cycles_of(item, MOST_CYCLES)) if is_goal else [],
        files=queries.files_left_by(item),
    )
    return WorkItemDetail(item).data
