"""Which fields does somebody fill in about what runs by itself? Shapes only; what is right, the services decide."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms

from apps.autonomy import queries
from apps.autonomy.enums import BuiltinWorkflow, RouteKind, Topic, TriggerKind
from apps.autonomy.models import Task
from apps.autonomy.schemas import DEFAULT_LIMITS, MOST_CALLS, MOST_SECONDS, MOST_TOKENS, MOST_USD, MOST_WRITES
from apps.memory.models import Collection
from apps.skills import queries as skill_rows
from apps.tenants.models import Deployment
from apps.work.queries import goals

GROUPS = (
    ("What", ("name", "deployment", "playbook", "prompt")),
    ("What it may use", ("skills", "tool_allow", "tool_deny", "model_name")),
    ("What it may spend, each time", ("cost_usd", "calls", "tokens", "wall_seconds", "memory_writes")),
    ("Where the result goes", ("route", "email", "webhook", "next_task", "with_context")),
    ("In line with others", ("priority", "lane", "critical", "max_attempts", "escalates_to", "delegates_to")),
)
FOLDED = ("What it may use", "In line with others")
_LIMITS = ("cost_usd", "calls", "tokens", "wall_seconds", "memory_writes")
SETTABLE = (TriggerKind.MANUAL, TriggerKind.CRON, TriggerKind.INTERVAL, TriggerKind.EVENT, TriggerKind.WATCH,
            TriggerKind.CHAIN, TriggerKind.GOAL_CHECK)  # fmt: skip


def _lines(label: str, help_text: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(label=label, help_text=help_text, required=False, max_length=4000, widget=area)


def _limit(label: str, most: int) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0, max_value=most)


def _usd(label: str, help_text: str = "") -> forms.DecimalField:
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
    """A task as a whole; `said` is what `save_task` takes."""

    name = forms.CharField(label="Name", max_length=120)
    deployment: forms.ModelChoiceField[Deployment] = forms.ModelChoiceField(
        queryset=None, label="For which bot", empty_label=None
    )
    playbook = forms.ChoiceField(
        label="What it does",
        choices=BuiltinWorkflow.choices,
        required=False,
        help_text="Built-in workflows need no model",
    )
    prompt = forms.CharField(
        label="In your words",
        required=False,
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="What it is asked to do, or what the built-in workflow should work on",
    )
    skills = forms.MultipleChoiceField(label="Skills", required=False, widget=forms.CheckboxSelectMultiple)
    tool_allow = _lines("Only these tools", "One a line; empty: all that its skills bring")
    tool_deny = _lines("Never these tools", "One a line; a no outweighs a yes")
    model_name = forms.CharField(
        label="Model", required=False, max_length=120, help_text="Empty: the one that plans for this bot"
    )
    cost_usd = _usd("Dollars", "0 stops the first call that costs anything")
    calls = _limit("Calls", MOST_CALLS)
    tokens = _limit("Model tokens", MOST_TOKENS)
    wall_seconds = _limit("Seconds", MOST_SECONDS)
    memory_writes = _limit("Things to propose", MOST_WRITES)
    route = forms.ChoiceField(label="The result goes", choices=RouteKind.choices)
    email = forms.BooleanField(label="By e-mail too", required=False)
    webhook = forms.BooleanField(label="To the company's webhooks too", required=False)
    next_task: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label="Which task then", required=False, empty_label="None"
    )
    with_context = forms.BooleanField(
        label="Tell it the result", required=False, help_text="As a stranger's words, never as an order"
    )
    priority = forms.IntegerField(label="Priority", help_text="9 goes first", min_value=0, max_value=9, initial=5)
    lane = forms.CharField(
        label="Lane", required=False, max_length=60, help_text="Tasks of one lane run one after another"
    )
    critical = forms.BooleanField(
        label="Goes on when only what is critical may run", required=False, help_text="After a spending limit"
    )
    max_attempts = forms.IntegerField(
        label="Attempts", help_text="After a fault of the machine", min_value=1, max_value=10, initial=3
    )
    escalates_to: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label="Task for what it cannot do", required=False, empty_label="None"
    )
    delegates_to: forms.ModelMultipleChoiceField[Task] = forms.ModelMultipleChoiceField(
        queryset=None,
        label="Tasks it may ask",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Of the same bot, three at most in a session; they share what it has left",
    )

    def __init__(self, *args: Any, owner_id: UUID, task: Task | None = None, **kwargs: Any) -> None:
        """`owner_id`: the member in whose name the task runs."""
        super().__init__(*args, **kwargs)
        others = Task.objects.filter(deleted_at=None).exclude(pk=task.pk if task else None).order_by("name")
        self._offer("deployment", Deployment.objects.order_by("title"))
        self._offer("next_task", others)
        self._offer("escalates_to", others)
        askable = queries.delegate_candidates(owner_id, of=task)
        self._offer("delegates_to", askable)
        chosen = self.fields["skills"]
        assert isinstance(chosen, forms.MultipleChoiceField)
        chosen.choices = _skills(task)
        if not chosen.choices:
            del self.fields["skills"]
        if not askable.exists():
            del self.fields["delegates_to"]

    def _offer(self, name: str, rows: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = rows

    @property
    def said(self) -> dict[str, Any]:
        """What `save_task` takes; only after `is_valid`."""
        given = self.cleaned_data
        allow = _words(given["tool_allow"])
        same = ("name", "playbook", "prompt", "model_name", "priority", "lane", "critical", "max_attempts")
        return {
            **{name: given[name] for name in same},
            "deployment_id": given["deployment"].pk,
            "skills": given.get("skills", []),
            "tool_allow": allow or None,
            "tool_deny": _words(given["tool_deny"]),
            "route": _route(given),
            "limits": {name: given[name] for name in _LIMITS if given[name] is not None},
            "escalates_to_id": given["escalates_to"].pk if given["escalates_to"] else None,
            "delegates_to": [each.pk for each in given.get("delegates_to", ())],
        }


def initial_of(task: Task) -> dict[str, Any]:
    """The form as the task stands."""
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


def initial_of_new() -> dict[str, Any]:
    """What stands in the form before anybody has said anything."""
    return {**DEFAULT_LIMITS.model_dump(), "route": RouteKind.NOTIFY, "with_context": True}


class CollectionField(forms.ModelChoiceField):  # type: ignore[type-arg]  # Django has no [] here
    def label_from_instance(self, one: Collection) -> str:
        return one.title or one.name


class WhenForm(forms.Form):
    """When a task runs; `spec` is what `add_trigger` takes."""

    prefix = "when"
    kind = forms.ChoiceField(label="When it runs", choices=[(kind.value, kind.label) for kind in SETTABLE])
    schedule = forms.CharField(
        label="Schedule",
        required=False,
        max_length=120,
        help_text="Minute, hour, day, month, weekday; 0 2 * * * is every night at two",
    )
    minutes = forms.IntegerField(label="Every so many minutes", required=False, min_value=1, max_value=525_600)
    topic = forms.ChoiceField(label="What happens", choices=Topic.choices, required=False)
    collection = CollectionField(queryset=None, label="Into which documents", required=False, empty_label="None")
    after: forms.ModelChoiceField[Task] = forms.ModelChoiceField(
        queryset=None, label="After which task", required=False, empty_label="None"
    )
    goal = forms.ChoiceField(label="Which goal", required=False)
    cap_usd = _usd("At most, in dollars", "Narrows what the task may spend; empty: as the task says")

    def __init__(self, *args: Any, task: Task | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        collection, after, goal = (self.fields[name] for name in ("collection", "after", "goal"))
        assert isinstance(collection, forms.ModelChoiceField) and isinstance(after, forms.ModelChoiceField)
        assert isinstance(goal, forms.ChoiceField)
        collection.queryset = Collection.objects.order_by("name")
        after.queryset = Task.objects.filter(deleted_at=None).exclude(pk=task.pk if task else None)
        goal.choices = [("", "None"), *((str(one.pk), one.title) for one in goals())]

    @property
    def kind_said(self) -> TriggerKind:
        return TriggerKind(self.cleaned_data["kind"])

    @property
    def spec(self) -> dict[str, Any]:
        """Only after `is_valid`; what is missing the service says."""
        given = self.cleaned_data
        match self.kind_said:
            case TriggerKind.CRON:
                return {"schedule": " ".join(given["schedule"].split())}
            case TriggerKind.INTERVAL:
                return {"seconds": (given["minutes"] or 0) * 60}
            case TriggerKind.EVENT:
                return {"topic": given["topic"]}
            case TriggerKind.WATCH:
                return {"collection": _id(given["collection"])}
            case TriggerKind.CHAIN:
                return {"after": _id(given["after"])}
            case TriggerKind.GOAL_CHECK:
                return {"goal": given["goal"]}
        return {}


class SettingsForm(forms.Form):
    """What a company allows to run by itself."""

    enabled = forms.BooleanField(label="Let tasks run by themselves", required=False)
    max_concurrent = forms.IntegerField(label="Sessions at the same time", min_value=0, max_value=100)
    idle_seconds = forms.IntegerField(
        label="Seconds without a call before one is stopped", min_value=30, max_value=86_400
    )
    retry_base_seconds = forms.IntegerField(label="Seconds before the second attempt", min_value=1, max_value=3600)
    retry_most_seconds = forms.IntegerField(label="Seconds between attempts, at most", min_value=1, max_value=86_400)
    cost_usd = _usd("Dollars a session, at most", "Whatever a task says; empty: as the task says")
    calls = _limit("Calls a session, at most", MOST_CALLS)
    tokens = _limit("Model tokens a session, at most", MOST_TOKENS)
    wall_seconds = _limit("Seconds a session, at most", MOST_SECONDS)
    memory_writes = _limit("Proposals a session, at most", MOST_WRITES)

    @property
    def said(self) -> dict[str, Any]:
        """What `change_settings` takes; only after `is_valid`."""
        own = {name: value for name, value in self.cleaned_data.items() if name not in _LIMITS}
        limits = {name: self.cleaned_data[name] for name in _LIMITS if self.cleaned_data[name] is not None}
        return {**own, "limits": limits}


def settings_as_they_are() -> dict[str, Any]:
    row = queries.autonomy_settings()
    names = [name for name in SettingsForm.base_fields if name not in _LIMITS]
    return {**{name: getattr(row, name) for name in names}, **row.limits}


def _skills(task: Task | None) -> list[tuple[str, str]]:
    """The newest version of each installed skill, and the ones the task is pinned to."""
    names = sorted(set(skill_rows.active_versions().values_list("name", flat=True)))
    pinned = {ref.split("@")[0]: ref for ref in (task.skills if task else ())}
    return [(pinned.get(name, name), name) for name in names]


def _route(given: dict[str, Any]) -> dict[str, Any]:
    match RouteKind(given["route"]):
        case RouteKind.NOTIFY:
            return {"kind": "notify", "email": given["email"], "webhook": given["webhook"]}
        case RouteKind.CHAIN_NEXT:
            return {"kind": "chain_next", "task": _id(given["next_task"]), "with_context": given["with_context"]}
    return {"kind": given["route"]}


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(text.split()))


def _id(row: Any) -> UUID | None:
    return row.pk if row is not None else None


def used(fields: Iterable[forms.BoundField]) -> bool:
    """Whether somebody said something in one of these fields."""
    return any(field.errors or str(field.value()) not in ("None", "", "False", "[]") for field in fields)
