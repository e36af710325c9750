"""The rows of a form for steps, of macros and of inbox rules."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.http import QueryDict

from apps.inbox import queries
from apps.inbox.enums import Do, Priority, Snooze
from apps.inbox.models import Team
from apps.inbox.steps import ME, NOBODY
from kernel.language import gettext


def step_groups(without: Collection[str] = ()) -> list[tuple[str, list[tuple[str, str]]]]:
    """What a step can be chosen from, by group, except what is named; a value is the step's kind and its own value."""
    plain = [(f"{do.value}:", str(do.label)) for do in (Do.TAKE_OVER, Do.RESOLVE)]
    people = [(f"{Do.ASSIGN}:{ME}", gettext("Me")), (f"{Do.ASSIGN}:{NOBODY}", gettext("Unassigned"))]
    people += [(f"{Do.ASSIGN}:{user.pk}", user.display_name) for user in queries.answering_members()]
    labels = queries.labels()
    replies = [(f"{Do.REPLY}:{reply.pk}", reply.name) for reply in queries.canned_replies()]
    groups = [
        (gettext("Conversation"), plain),
        (str(Do.ASSIGN.label), people),
        (str(Do.TEAM.label), [(f"{Do.TEAM}:{team.pk}", team.name) for team in Team.objects.all()]),
        (str(Do.LABEL.label), [(f"{Do.LABEL}:{label.pk}", label.name) for label in labels]),
        (str(Do.UNLABEL.label), [(f"{Do.UNLABEL}:{label.pk}", label.name) for label in labels]),
        (str(Do.PRIORITY.label), [(f"{Do.PRIORITY}:{value}", str(words)) for value, words in Priority.choices]),
        (str(Do.SNOOZE.label), [(f"{Do.SNOOZE}:{value}", str(words)) for value, words in Snooze.choices]),
        (gettext("Canned reply"), replies),
        (gettext("Text"), [(f"{do.value}:text", str(do.label)) for do in (Do.NOTE, Do.REPLY)]),
    ]
    chosen = [(name, [option for option in options if option[0] not in without]) for name, options in groups]
    return [group for group in chosen if group[1]]


def shown_step(step: Mapping[str, str]) -> dict[str, object]:
    """A step as its row of the form has it."""
    known = {value for _, options in step_groups() for value, _ in options}
    if not step.get("do"):
        return {"pick": "", "text": ""}
    picked = f"{step['do']}:{step.get('value', '')}"
    if picked in known:
        return {"pick": picked, "text": ""}
    return {"pick": f"{step['do']}:text", "text": step.get("value", "")}


def steps_from(posted: QueryDict) -> list[dict[str, str]]:
    chosen = []
    for pick, text in zip(posted.getlist("pick"), posted.getlist("text"), strict=False):
        do, _, value = pick.partition(":")
        if do:
            chosen.append({"do": do, "value": text if value == "text" else value})
    return chosen
