"""Serializers of the API of tasks and sessions. They check the form only; the services apply the rules."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from apps.autonomy.enums import Egress, SessionStatus, TriggerKind
from apps.tenants.api_auth import RequestSerializer

MOST = 200
REFUSALS: dict[int, Any] = {
    401: OpenApiResponse(description="`not_authenticated`: no API key and no login"),
    403: OpenApiResponse(description="`forbidden_role`; `not_opted_in`: no member has allowed this to run unattended"),
    404: OpenApiResponse(description="`not_found`: unknown or foreign"),
}
INVALID: dict[int, Any] = {
    400: OpenApiResponse(description="`invalid`: a field is wrong; `bad_schedule`"),
    422: OpenApiResponse(description="`task_…`, `trigger_…`: why this can't work"),
}
START_REFUSALS: dict[int, Any] = {
    409: OpenApiResponse(description="Why nothing starts: `quarantined`, `not_over`, `not_opted_in` and others"),
    503: OpenApiResponse(description="`scheduler_disabled`: the company has turned automations off"),
}


class Dollars(serializers.DecimalField):
    """Dollars as text, exact: no rounding and no padding."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_digits": 18, "decimal_places": 9, "normalize_output": True, **options})

    def quantize(self, value: Decimal) -> Decimal:
        return value


def money(**options: Any) -> Dollars:
    return Dollars(**options)


class PageRequest(RequestSerializer):
    """Paging. Values out of bounds are clamped, not refused."""

    limit = serializers.IntegerField(default=50, help_text="Clamped to 1..200")
    offset = serializers.IntegerField(default=0, help_text="Negative values count as 0")

    def validate_limit(self, value: int) -> int:
        return min(max(value, 1), MOST)

    def validate_offset(self, value: int) -> int:
        return min(max(value, 0), 10_000_000)


TASK_STATUSES = ("pending", "scheduled", "running", "dead_letter")


class TasksRequest(PageRequest):
    status = serializers.ChoiceField(choices=TASK_STATUSES, required=False)


class SessionsRequest(PageRequest):
    status = serializers.ChoiceField(choices=SessionStatus.values, required=False)
    task = serializers.UUIDField(required=False)


class TriggerAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    spec = serializers.DictField()
    enabled = serializers.BooleanField()
    disabled_reason = serializers.CharField()
    cap_usd = money(allow_null=True)
    next_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)


class TaskAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="task.pk")
    name = serializers.CharField(source="task.name")
    status = serializers.ChoiceField(choices=TASK_STATUSES)
    deployment = serializers.UUIDField(source="task.deployment_id")
    owner = serializers.UUIDField(source="task.owner_id", allow_null=True)
    playbook = serializers.CharField(source="task.playbook")
    prompt = serializers.CharField(source="task.prompt")
    skills = serializers.ListField(child=serializers.CharField(), source="task.skills")
    tool_allow = serializers.ListField(child=serializers.CharField(), source="task.tool_allow", allow_null=True)
    tool_deny = serializers.ListField(child=serializers.CharField(), source="task.tool_deny")
    model = serializers.CharField(source="task.model_name")
    lane = serializers.CharField(source="task.lane")
    priority = serializers.IntegerField(source="task.priority")
    critical = serializers.BooleanField(source="task.critical")
    route = serializers.DictField(source="task.route")
    limits = serializers.DictField(source="task.limits")
    max_attempts = serializers.IntegerField(source="task.max_attempts")
    escalates_to = serializers.UUIDField(source="task.escalates_to_id", allow_null=True)
    delegates_to = serializers.ListField(source="task.delegates_to", child=serializers.UUIDField())
    quarantined_at = serializers.DateTimeField(source="task.quarantined_at", allow_null=True)
    quarantine_reason = serializers.CharField(source="task.quarantine_reason")
    next_run_at = serializers.DateTimeField(source="next_at", allow_null=True)
    last_session = serializers.UUIDField(source="last.pk", allow_null=True, default=None)
    spent_usd = money(source="spent", help_text="Of its sessions of the last 30 days")
    triggers = TriggerAnswer(many=True)
    created_at = serializers.DateTimeField(source="task.created_at")


class _Text(serializers.CharField):
    def __init__(self, most: int, **options: Any) -> None:
        super().__init__(max_length=most, required=False, allow_blank=True, **options)


class TaskChange(RequestSerializer):
    """What is not said stays as it is, or is the default of a new task."""

    name = serializers.CharField(max_length=120, required=False)
    deployment = serializers.UUIDField(required=False)
    playbook = _Text(20)
    prompt = _Text(8000)
    skills = serializers.ListField(child=serializers.CharField(max_length=200), required=False, max_length=50)
    tool_allow = serializers.ListField(
        child=serializers.CharField(max_length=120), required=False, allow_null=True, max_length=200
    )
    tool_deny = serializers.ListField(child=serializers.CharField(max_length=120), required=False, max_length=200)
    model = _Text(120)
    lane = _Text(60)
    priority = serializers.IntegerField(min_value=0, max_value=9, required=False)
    critical = serializers.BooleanField(required=False)
    route = serializers.DictField(required=False, help_text='`{"kind": "silent"}`, notify, memory_update, chain_next')
    limits = serializers.DictField(required=False, help_text="cost_usd, calls, tokens, wall_seconds, memory_writes")
    max_attempts = serializers.IntegerField(min_value=1, max_value=10, required=False)
    escalates_to = serializers.UUIDField(required=False, allow_null=True)
    delegates_to = serializers.ListField(
        child=serializers.UUIDField(),
        max_length=10,
        required=False,
        help_text="Tasks to which its planner may delegate",
    )


class TriggerRequest(RequestSerializer):
    kind = serializers.ChoiceField(choices=TriggerKind.values)
    spec = serializers.DictField(default=dict, help_text='`{"schedule": "0 2 * * *"}`, `{"seconds": 3600}`, …')
    cap_usd = money(required=False, allow_null=True)


class TriggerChange(RequestSerializer):
    spec = serializers.DictField(required=False)
    enabled = serializers.BooleanField(required=False)
    cap_usd = money(required=False, allow_null=True)


class NewTask(TaskChange):
    name = serializers.CharField(max_length=120)
    deployment = serializers.UUIDField()
    triggers = TriggerRequest(many=True, required=False)


class RunRequest(RequestSerializer):
    cap_usd = money(required=False, allow_null=True)


class SessionAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.UUIDField(source="task_id")
    task_name = serializers.CharField(source="task.name")
    trigger_kind = serializers.CharField()
    requested_by = serializers.CharField()
    parent_session = serializers.UUIDField(source="parent_id", allow_null=True)
    attempt = serializers.IntegerField()
    status = serializers.CharField()
    phase = serializers.CharField()
    halt_state = serializers.CharField(source="run.halt_state", default="running")
    terminal_reason = serializers.CharField()
    error_code = serializers.CharField()
    limits = serializers.DictField()
    cost_total_usd = money(source="run.cost_total", default=None, allow_null=True)
    cost_reserved_usd = money(source="run.cost_reserved", default=None, allow_null=True)
    queued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class HaltAnswer(serializers.Serializer[Any]):
    halting = serializers.BooleanField(help_text="False: it was already stopping or over")
    status = serializers.CharField()
    halt_state = serializers.CharField()


class LeftLine(serializers.Serializer[Any]):
    session = serializers.UUIDField()
    task = serializers.UUIDField()
    cost_total_usd = money()
    cost_reserved_usd = money()
    left = serializers.DictField()


class GlobalLine(serializers.Serializer[Any]):
    period = serializers.CharField()
    limit_usd = money()
    spent_usd = money()
    reserved_usd = money()


class LeftAnswer(serializers.Serializer[Any]):
    enabled = serializers.BooleanField(help_text="Whether the company has enabled automations")
    paused = serializers.BooleanField(help_text="Whether a reached limit pauses automations")
    company = GlobalLine(many=True)
    running = LeftLine(many=True)


class WebhookRequest(RequestSerializer):
    url = serializers.CharField(max_length=500)
    events = serializers.ListField(
        child=serializers.CharField(max_length=40), default=list, max_length=40, help_text="Types; empty: all"
    )


class WebhookEdit(RequestSerializer):
    url = serializers.CharField(max_length=500, required=False)
    events = serializers.ListField(
        child=serializers.CharField(max_length=40), required=False, max_length=40, help_text="Types; empty: all"
    )
    enabled = serializers.BooleanField(required=False, help_text="If not, it receives nothing")


class WebhookAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField(), help_text="Empty: all")
    enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class NewWebhook(WebhookAnswer):
    secret = serializers.CharField(help_text="Shown once; deliveries are signed with it")


class DeliveryAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    event = serializers.CharField()
    state = serializers.CharField()
    attempts = serializers.IntegerField()
    error_code = serializers.CharField()
    created_at = serializers.DateTimeField()
    sent_at = serializers.DateTimeField(allow_null=True)


class SettingsChange(RequestSerializer):
    enabled = serializers.BooleanField(required=False)
    max_concurrent = serializers.IntegerField(required=False, min_value=0, max_value=100)
    idle_seconds = serializers.IntegerField(required=False, min_value=30, max_value=86_400)
    retry_base_seconds = serializers.IntegerField(required=False, min_value=1, max_value=3600)
    retry_most_seconds = serializers.IntegerField(required=False, min_value=1, max_value=86_400)
    limits = serializers.DictField(required=False)
    egress = serializers.ChoiceField(
        required=False, choices=Egress.choices, help_text="What runs may send to model providers and outside services"
    )
