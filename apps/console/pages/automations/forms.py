"""Forms of automations, their triggers and the company's settings. The services decide what is valid."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.autonomy import queries
from apps.autonomy.enums import BuiltinWorkflow, Egress, RouteKind, Topic, TriggerKind
from apps.autonomy.models import Task
from apps.autonomy.schemas import DEFAULT_LIMITS, MOST_CALLS, MOST_SECONDS, MOST_TOKENS, MOST_USD, MOST_WRITES
from apps.knowledge.models import Collection
from apps.skills import queries as skill_rows
from apps.tenants.models import Deployment
from apps.work.queries import goals

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

GROUPS = (
    (gettext_lazy("General"), ("name", "deployment", "playbook", "prompt")),
    (gettext_lazy("Tools and model"), ("skills", "tool_allow", "tool_deny", "model_name")),
    (gettext_lazy("Limits per run"), ("cost_usd", "calls", "tokens", "wall_seconds", "memory_writes")),
    (gettext_lazy("Result"), ("route", "email", "webhook", "next_task", "with_context")),
    (
        gettext_lazy("Queue and retries"),
        ("priority", "lane", "critical", "max_attempts", "escalates_to", "delegates_to"),
    ),
)
FOLDED = (gettext_lazy("Tools and model"),)
_LIMITS = ("cost_usd", "calls", "tokens", "wall_seconds", "memory_writes")
SETTABLE = (TriggerKind.MANUAL, TriggerKind.CRON, TriggerKind.INTERVAL, TriggerKind.EVENT, TriggerKind.WATCH,
            TriggerKind.CHAIN, TriggerKind.GOAL_CHECK)  # fmt: skip


def _lines(label: StrOrPromise, help_text: StrOrPromise) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=4000, widget=area)


def _limit(label: StrOrPromise, most: int) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0, max_value=most)


def _usd(label: StrOrPromise, help_text: StrOrPromise = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        help_text=help_text,
        required=False,
        min_value=Decimal(0),
        max_value=MOST_USD,
        max_digits=18,
        decimal_places=9,
    )


class TaskForm(forms.Form):
    """An automation; after `is_valid`, `values` is what `save_task` takes."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    deployment: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("Chatbot"), empty_label=None
    )
    playbook = forms.ChoiceField(
        label=gettext_lazy("Workflow"),
        choices=BuiltinWorkflow.choices,
        required=False,
        help_text=gettext_lazy("A built-in workflow doesn't need a model"),
    )
    prompt = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy("What it should do, or what a built-in workflow should focus on"),
    )
    skills = forms.MultipleChoiceField(
        label=gettext_lazy("Skills"), required=False, widget=forms.CheckboxSelectMultiple
    )
    tool_allow = _lines(
        gettext_lazy("Allowed tools"), gettext_lazy("One per line. Leave empty for all tools of its skills")
    )
    tool_deny = _lines(gettext_lazy("Blocked tools"), gettext_lazy("One per line. Blocking overrides allowing"))
    model_name = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Leave empty to use this chatbot's planning model"),
    )
    cost_usd = _usd(gettext_lazy("Dollars"), gettext_lazy("0 stops before the first paid call"))
    calls = _limit(gettext_lazy("Calls"), MOST_CALLS)
    tokens = _limit(gettext_lazy("Model tokens"), MOST_TOKENS)
    wall_seconds = _limit(gettext_lazy("Seconds"), MOST_SECONDS)
    memory_writes = _limit(gettext_lazy("Proposals"), MOST_WRITES)
    route = forms.ChoiceField(label=gettext_lazy("Send the result to"), choices=RouteKind.choices)
    email = forms.BooleanField(label=gettext_lazy("Also by email"), required=False)
    webhook = forms.BooleanField(label=gettext_lazy("Also to webhooks"), required=False)
    next_task: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("Next automation"), required=False, empty_label=gettext_lazy("None")
    )
    with_context = forms.BooleanField(
        label=gettext_lazy("Pass on the result"),
        required=False,
        help_text=gettext_lazy("Passed on as untrusted text, not as instructions"),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"), help_text=gettext_lazy("9 is the highest"), min_value=0, max_value=9, initial=5
    )
    lane = forms.CharField(
        label=gettext_lazy("Lane"),
        required=False,
        max_length=60,
        help_text=gettext_lazy("Automations in the same lane run one after another"),
    )
    critical = forms.BooleanField(
        label=gettext_lazy("Critical"),
        required=False,
        help_text=gettext_lazy("Continues after a spending limit is reached"),
    )
    max_attempts = forms.IntegerField(
        label=gettext_lazy("Attempts"),
        help_text=gettext_lazy("After technical failures"),
        min_value=1,
        max_value=10,
        initial=3,
    )
    escalates_to: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("Escalate to"), required=False, empty_label=gettext_lazy("None")
    )
    delegates_to: forms.ModelMultipleChoiceField[Task] = forms.ModelMultipleChoiceField(
        queryset=None,
        label=gettext_lazy("Can delegate to"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Up to three per run, for the same chatbot. They share the remaining budget"),
    )

    def __init__(self, *args: Any, owner_id: UUID, task: Task | None = None, **kwargs: Any) -> None:
        """`owner_id` is the member in whose name the automation runs."""
        super().__init__(*args, **kwargs)
        others = _others(task).order_by("name")
        self._offer("deployment", Deployment.objects.order_by("title"))
        self._offer("next_task", others)
        self._offer("escalates_to", others)
        askable = queries.delegate_candidates(owner_id, of=task)
        self._offer("delegates_to", askable)
        chosen = self.fields["skills"]
        assert isinstance(chosen, forms.MultipleChoiceField)
        names = sorted(set(skill_rows.active_versions().values_list("name", flat=True)))
        pinned = {ref.split("@")[0]: ref for ref in (task.skills if task else ())}
        chosen.choices = [(pinned.get(name, name), name) for name in names]
        if not chosen.choices:
            del self.fields["skills"]
        if not askable.exists():
            del self.fields["delegates_to"]

    def _offer(self, name: str, rows: QuerySet[Model]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of `save_task`; only after `is_valid`."""
        cleaned = self.cleaned_data
        allow = _words(cleaned["tool_allow"])
        same = ("name", "playbook", "prompt", "model_name", "priority", "lane", "critical", "max_attempts")
        return {
            **{name: cleaned[name] for name in same},
            "deployment_id": cleaned["deployment"].pk,
            "skills": cleaned.get("skills", []),
            "tool_allow": allow or None,
            "tool_deny": _words(cleaned["tool_deny"]),
            "route": _route(cleaned),
            "limits": {name: cleaned[name] for name in _LIMITS if cleaned[name] is not None},
            "escalates_to_id": cleaned["escalates_to"].pk if cleaned["escalates_to"] else None,
            "delegates_to": [task.pk for task in cleaned.get("delegates_to", ())],
        }


def initial_of(task: Task) -> dict[str, object]:
    """Return the form values of a saved automation."""
    limits, route = task.own_limits, task.route
    same = ("name", "playbook", "prompt", "model_name", "priority", "lane", "critical", "max_attempts")
    return {
        **{name: getattr(task, name) for name in same},
        **limits.model_dump(),
        "deployment": task.deployment_id,
        "skills": task.skills,
        "tool_allow": "\n".join(task.tool_allow or ()),
        "tool_deny": "\n".join(task.tool_deny),
        "route": route["kind"],
        "email": route.get("email", False),
        "webhook": route.get("webhook", False),
        "next_task": route.get("task"),
        "with_context": route.get("with_context", True),
        "escalates_to": task.escalates_to_id,
        "delegates_to": task.delegates_to,
    }


def initial_of_new() -> dict[str, object]:
    """Return the form values of a new automation."""
    return {**DEFAULT_LIMITS.model_dump(), "route": RouteKind.NOTIFY, "with_context": True}


class CollectionField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django has no [] here
    def label_from_instance(self, collection: Collection) -> str:
        return collection.title or collection.name


class TriggerForm(forms.Form):
    """A trigger; after `is_valid`, `spec` is what `add_trigger` takes."""

    prefix = "when"
    kind = forms.ChoiceField(label=gettext_lazy("Trigger"), choices=[(kind.value, kind.label) for kind in SETTABLE])
    schedule = forms.CharField(
        label=gettext_lazy("Schedule"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Minute, hour, day, month, weekday. Example: 0 2 * * * runs every night at 2:00"),
    )
    minutes = forms.IntegerField(
        label=gettext_lazy("Interval in minutes"), required=False, min_value=1, max_value=525_600
    )
    topic = forms.ChoiceField(label=gettext_lazy("Event"), choices=Topic.choices, required=False)
    collection = CollectionField(
        queryset=None, label=gettext_lazy("Collection"), required=False, empty_label=gettext_lazy("None")
    )
    after: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label=gettext_lazy("After automation"), required=False, empty_label=gettext_lazy("None")
    )
    goal = forms.ChoiceField(label=gettext_lazy("Goal"), required=False)
    cap_usd = _usd(gettext_lazy("Cap in dollars"), gettext_lazy("Leave empty to use the limit of the automation"))

    def __init__(self, *args: Any, task: Task | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        collection, after, goal = (self.fields[name] for name in ("collection", "after", "goal"))
        assert isinstance(collection, forms.ModelChoiceField) and isinstance(after, forms.ModelChoiceField)
        assert isinstance(goal, forms.ChoiceField)
        collection.queryset = Collection.objects.order_by("name")
        after.queryset = _others(task)
        goal.choices = [("", _("None")), *((str(goal.pk), goal.title) for goal in goals())]

    @property
    def trigger_kind(self) -> TriggerKind:
        return TriggerKind(self.cleaned_data["kind"])

    @property
    def spec(self) -> dict[str, Any]:
        """The specification of the trigger; only after `is_valid`. The service reports missing values."""
        cleaned = self.cleaned_data
        match self.trigger_kind:
            case TriggerKind.CRON:
                return {"schedule": " ".join(cleaned["schedule"].split())}
            case TriggerKind.INTERVAL:
                return {"seconds": (cleaned["minutes"] or 0) * 60}
            case TriggerKind.EVENT:
                return {"topic": cleaned["topic"]}
            case TriggerKind.WATCH:
                return {"collection": _id(cleaned["collection"])}
            case TriggerKind.CHAIN:
                return {"after": _id(cleaned["after"])}
            case TriggerKind.GOAL_CHECK:
                return {"goal": cleaned["goal"]}
        return {}


class SettingsForm(forms.Form):
    """The company's automation settings; after `is_valid`, `values` is what `change_settings` takes."""

    enabled = forms.BooleanField(label=gettext_lazy("Automations on"), required=False)
    max_concurrent = forms.IntegerField(label=gettext_lazy("Maximum parallel runs"), min_value=0, max_value=100)
    idle_seconds = forms.IntegerField(label=gettext_lazy("Idle timeout in seconds"), min_value=30, max_value=86_400)
    retry_base_seconds = forms.IntegerField(
        label=gettext_lazy("Delay before the first retry, in seconds"), min_value=1, max_value=3600
    )
    retry_most_seconds = forms.IntegerField(
        label=gettext_lazy("Maximum delay between retries, in seconds"), min_value=1, max_value=86_400
    )
    egress = forms.ChoiceField(
        label=gettext_lazy("Sent to model providers and outside services"),
        choices=Egress.choices,
        help_text=gettext_lazy("Replaced personal data is put back into the results that your team reads"),
    )
    cost_usd = _usd(
        gettext_lazy("Maximum dollars per run"),
        gettext_lazy("Applies to all automations. Leave empty for no company limit"),
    )
    calls = _limit(gettext_lazy("Maximum calls per run"), MOST_CALLS)
    tokens = _limit(gettext_lazy("Maximum model tokens per run"), MOST_TOKENS)
    wall_seconds = _limit(gettext_lazy("Maximum seconds per run"), MOST_SECONDS)
    memory_writes = _limit(gettext_lazy("Maximum proposals per run"), MOST_WRITES)

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of `change_settings`; only after `is_valid`."""
        own = {name: value for name, value in self.cleaned_data.items() if name not in _LIMITS}
        limits = {name: self.cleaned_data[name] for name in _LIMITS if self.cleaned_data[name] is not None}
        return {**own, "limits": limits}


def initial_settings() -> dict[str, object]:
    row = queries.autonomy_settings()
    names = [name for name in SettingsForm.base_fields if name not in _LIMITS]
    return {**{name: getattr(row, name) for name in names}, **row.limits}


def _route(cleaned: dict[str, Any]) -> dict[str, object]:
    match RouteKind(cleaned["route"]):
        case RouteKind.NOTIFY:
            return {"kind": "notify", "email": cleaned["email"], "webhook": cleaned["webhook"]}
        case RouteKind.CHAIN_NEXT:
            return {"kind": "chain_next", "task": _id(cleaned["next_task"]), "with_context": cleaned["with_context"]}
    return {"kind": cleaned["route"]}


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.split()))


def _id(row: Model | None) -> UUID | None:
    return row.pk if row is not None else None


def has_input(fields: Iterable[forms.BoundField]) -> bool:
    """True if one of these fields has a value or an error."""
    return any(field.errors or str(field.value()) not in ("None", "", "False", "[]") for field in fields)


def _others(task: Task | None) -> QuerySet[Task]:
    rows = Task.objects.filter(deleted_at=None)
    return rows.exclude(pk=task.pk) if task else rows
