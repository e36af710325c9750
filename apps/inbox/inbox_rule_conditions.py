"""Conditions of inbox rules: checked when they are saved, in words, and asked of conversations.

Values are ids, choices or texts. A condition that names a deleted chatbot, label or team keeps its rule from running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import assert_never

from apps.access.rules import PUBLIC
from apps.inbox import queries
from apps.inbox.enums import ConditionField, ConditionOperator
from apps.inbox.models import Label, Team
from apps.inbox.queries import Listed
from apps.inbox.rules import CLOSED, NO, OPEN, YES, Facts
from apps.messengers.enums import ChannelKind
from apps.sessions import person_wanted
from apps.sessions.models import ChatSession
from apps.sessions.rules import language_of
from apps.tenants.hours import is_open
from apps.tenants.models import Deployment
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

MAX_CONDITIONS, MAX_TEXT = 10, 200
WIDGET = "widget"
Condition = Mapping[str, str]
_TEXT_OPERATORS = (ConditionOperator.CONTAINS, ConditionOperator.CONTAINS_NOT)


class Subjects:
    """What conditions refer to, by id; read once for a list of conditions."""

    def __init__(self) -> None:
        self.chatbots: dict[str, Deployment] = {str(row.pk): row for row in Deployment.objects.order_by("title")}
        self.labels: dict[str, Label] = {str(row.pk): row for row in queries.labels()}
        self.teams: dict[str, Team] = {str(row.pk): row for row in Team.objects.all()}


def channels() -> list[tuple[str, str]]:
    """The channels that a condition can name, with their names."""
    return [(WIDGET, gettext("Chat on the website")), *((kind.value, str(kind.label)) for kind in ChannelKind)]


def choices_of(field: ConditionField, subjects: Subjects) -> list[tuple[str, str]]:
    """The values that a condition on this field can have, with their names; none for a text."""
    match field:
        case ConditionField.CHATBOT:
            return [(pk, row.title) for pk, row in subjects.chatbots.items()]
        case ConditionField.CHANNEL:
            return channels()
        case ConditionField.LABEL:
            return [(pk, row.name) for pk, row in subjects.labels.items()]
        case ConditionField.TEAM:
            return [("", gettext("No team")), *((pk, row.name) for pk, row in subjects.teams.items())]
        case ConditionField.ASSIGNED | ConditionField.IDENTIFIED:
            return [(YES, gettext("Yes")), (NO, gettext("No"))]
        case ConditionField.HOURS:
            return [(OPEN, gettext("Open")), (CLOSED, gettext("Closed"))]
        case ConditionField.LANGUAGE | ConditionField.TEXT:
            return []
    assert_never(field)


def operators_of(field: ConditionField) -> tuple[ConditionOperator, ...]:
    return _TEXT_OPERATORS if field == ConditionField.TEXT else (ConditionOperator.IS, ConditionOperator.IS_NOT)


def sound(given: Sequence[Mapping[str, object]]) -> list[dict[str, str]]:
    """The conditions as they are stored. Raises 400 `bad_rule` for too many, or one that cannot be asked."""
    if len(given) > MAX_CONDITIONS:
        raise bad_rule(gettext("Use up to {most} conditions.").format(most=MAX_CONDITIONS))
    subjects, conditions = Subjects(), list[dict[str, str]]()
    for one in given:
        field, operator, value = one.get("field"), one.get("operator"), one.get("value", "")
        if (
            field not in ConditionField.values
            or not isinstance(value, str)
            or set(one) - {"field", "operator", "value"}
        ):
            raise bad_rule(gettext("Choose what each condition looks at."))
        what = ConditionField(str(field))
        if operator not in operators_of(what) or not _fits(what, value, subjects):
            raise bad_rule(gettext("Choose a valid value for “{condition}”.").format(condition=what.label))
        conditions.append({"field": what.value, "operator": str(operator), "value": value.strip()})
    return conditions


def describe(conditions: Sequence[Condition], subjects: Subjects) -> list[str]:
    """The conditions in words."""
    said = []
    for condition in conditions:
        field = ConditionField(condition["field"])
        names = dict(choices_of(field, subjects))
        value = names.get(condition["value"], "…") if names else f"“{condition['value']}”"
        said.append(f"{field.label} {ConditionOperator(condition['operator']).label} {value}")
    return said


def is_missing(conditions: Sequence[Condition], subjects: Subjects) -> bool:
    """Whether a condition names what was deleted since."""
    return not all(_fits(ConditionField(one["field"]), one["value"], subjects) for one in conditions)


def facts_of(listed: Listed, conditions: Sequence[Condition], *, text: str, moment: datetime) -> Facts:
    """What these conditions are asked of. Opening hours are looked up only for a condition about them."""
    session, standing = listed.session, listed.standing
    asks_hours = any(one["field"] == ConditionField.HOURS for one in conditions)
    return Facts(
        chatbot=str(session.deployment_id),
        channel=session.channel or WIDGET,
        language=language_of(session)[:2],
        labels=frozenset(str(label.pk) for label in listed.labels),
        team=str(standing.team.pk) if standing.team else "",
        is_assigned=standing.assignee is not None,
        is_open=_is_open(session, moment) if asks_hours else True,
        is_identified=session.level_at(moment) != PUBLIC,
        text=text,
    )


def bad_rule(message: str) -> SilasError:
    return SilasError(ErrorCode.BAD_RULE, message)


def _is_open(session: ChatSession, moment: datetime) -> bool:
    """Whether the people who answer this conversation are there: its team, else its chatbot."""
    schedule = person_wanted.schedule_of(session)
    return is_open(schedule.hours, zone=schedule.zone, moment=moment, holidays=schedule.holidays)


def _fits(field: ConditionField, value: str, subjects: Subjects) -> bool:
    match field:
        case ConditionField.TEXT:
            return bool(value.strip()) and len(value) <= MAX_TEXT and "\0" not in value
        case ConditionField.LANGUAGE:
            return len(value) == 2 and value.isascii() and value.isalpha()
        case _:
            return value in dict(choices_of(field, subjects))
