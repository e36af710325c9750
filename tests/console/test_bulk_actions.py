"""Actions on several selected conversations, and the message about their result."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils.html import escape

from apps.audit.models import AuditEntry
from apps.inbox import bulk, labels_and_replies, services
from apps.inbox.models import DeskState, SessionLabel
from apps.sessions.models import ChatSession
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member


@pytest.fixture
def three(deployment: Any) -> list[ChatSession]:
    made = [make_session(deployment) for _ in range(3)]
    for each in made:
        say(each, "Where is it?")
    return made


def _press(user: Any, sessions: list[Any], **deed: str) -> Any:
    data = {"pick": [str(getattr(one, "pk", one)) for one in sessions], **deed}
    return browser(user).post(reverse("console-several"), data, follow=True)


def _told(answer: Any) -> str:
    return str(answer.content.decode().partition('id="told" role="status">')[2].partition("</p>")[0])


def _states(sessions: list[ChatSession]) -> list[str]:
    with tenant_scope(sessions[0].tenant_id):
        return list(DeskState.objects.filter(session__in=sessions).values_list("status", flat=True))


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_several_are_not_resolved_by_somebody_without_the_role(
    three: list[ChatSession], who: str, request: Any
) -> None:
    assert _press(request.getfixturevalue(who), three, resolve="").status_code == 403
    assert _states(three) == []


def test_conversations_of_another_company_are_told_as_not_found(
    three: list[ChatSession], agent: Any, other_tenant: Any
) -> None:
    theirs = make_session(make_deployment(other_tenant))
    told = _told(_press(agent, [three[0], theirs], resolve=""))
    assert told == f"1 resolved. 1 was not: {escape(NotFound().message)}"
    assert _states([theirs]) == []


def test_member_of_another_company_resolves_nothing(three: list[ChatSession], other_tenant: Any) -> None:
    _press(make_member(other_tenant, "owner"), three, resolve="")
    assert _states(three) == []


def test_what_was_so_already_is_told_apart(three: list[ChatSession], agent: Any) -> None:
    with tenant_scope(three[0].tenant_id):
        services.resolve(three[0].pk, agent)
    assert _told(_press(agent, three, resolve="")) == "2 resolved, 1 was already resolved."
    assert _states(three) == ["resolved"] * 3


def test_each_deed_is_an_entry_of_its_own(three: list[ChatSession], agent: Any) -> None:
    _press(agent, [*three, three[0]], snooze="reply")
    with tenant_scope(three[0].tenant_id):
        subjects = AuditEntry.objects.filter(event="conversation_snoozed").values_list("subject", flat=True)
        assert sorted(subjects) == sorted(f"session:{one.pk}" for one in three)


@pytest.mark.parametrize(
    ("deed", "told"),
    [("assign", "3 assigned."), ("label", "3 labelled."), ("unlabel", "0 unlabelled, 3 were already.")],
)
def test_several_are_assigned_and_labelled(three: list[ChatSession], agent: Any, deed: str, told: str) -> None:
    with tenant_scope(three[0].tenant_id):
        label = labels_and_replies.save_label(agent, name="Refunds", colour="red")
    answer = _press(agent, three, **{deed: str(agent.pk if deed == "assign" else label.pk)})
    with tenant_scope(three[0].tenant_id):
        kept = (DeskState.objects.filter(assignee=agent).count(), SessionLabel.objects.filter(label=label).count())
    assert _told(answer) == told
    assert kept == {"assign": (3, 0), "label": (0, 3), "unlabel": (0, 0)}[deed]


@pytest.mark.parametrize("deed", [{}, {"snooze": "x"}, {"label": "x"}, {"assign": "x"}, {"assign": str(uuid4())}])
def test_deed_that_is_none_changes_nothing(three: list[ChatSession], agent: Any, deed: dict[str, str]) -> None:
    assert _press(agent, three, **deed).status_code in (400, 409)
    assert _states(three) == []


@pytest.mark.parametrize("ticked", [[], ["x"], [uuid4() for _ in range(51)]])
def test_none_or_too_many_are_refused(agent: Any, three: list[ChatSession], ticked: list[Any]) -> None:
    assert _press(agent, ticked, resolve="").status_code == 400


def test_refusal_in_one_undoes_nothing_in_another(three: list[ChatSession], agent: Any) -> None:
    def deed(pk: Any) -> bool:
        did = services.resolve(pk, agent)
        if pk == three[1].pk:
            raise SilasError("no", "Not this one.", status=409)
        return did

    outcome = bulk.in_each(three[0].tenant_id, [one.pk for one in three], deed)
    assert outcome == bulk.Outcome(2, 0, 1, "Not this one.")
    assert len(_states(three)) == 2


def test_list_stays_where_it_was(three: list[ChatSession], agent: Any) -> None:
    address = reverse("console-several-beside", args=[three[0].pk])
    answer = browser(agent).post(f"{address}?tab=mine", {"pick": [str(three[0].pk)], "resolve": ""}, **HTMX)
    assert answer["Location"] == f"/console/inbox/{three[0].pk}/?tab=mine"
