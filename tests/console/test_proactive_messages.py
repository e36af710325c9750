"""The pages of a chatbot's proactive messages."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.tenants.models import Deployment
from apps.visitors import proactive_messages
from apps.visitors.models import ProactiveMessage
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.tenants import make_deployment, make_member
from tests.factories.visitors import make_proactive_message

FORM = {"text": "Need help?", "page": "/pricing", "seconds": "5", "audience": "new", "repeat_days": "0"}


def _address(deployment: Deployment, rest: str = "") -> str:
    return f"/console/studio/{deployment.pk}/messages/{rest}"


def _messages(deployment: Deployment) -> list[ProactiveMessage]:
    with tenant_scope(deployment.tenant_id):
        return proactive_messages.messages_of(deployment.pk)


def test_owner_creates_a_message_and_sees_it_in_the_list(owner: Any, deployment: Any) -> None:
    client = browser(owner)
    saved = client.post(_address(deployment, "new/"), {**FORM, "is_active": "on"})
    assert saved.url == _address(deployment)
    (message,) = _messages(deployment)
    assert message.page == "/pricing"
    assert message.audience == "new"
    assert message.is_active
    listed = client.get(_address(deployment)).content.decode()
    assert "Need help?" in listed
    assert "Answered in 0 conversations" in listed


def test_owner_turns_a_message_off_and_deletes_it(owner: Any, deployment: Any) -> None:
    client, message = browser(owner), make_proactive_message(deployment)
    assert client.post(_address(deployment, f"{message.pk}/"), FORM).status_code == 302
    assert not _messages(deployment)[0].is_active
    assert client.post(_address(deployment, f"{message.pk}/delete/")).url == _address(deployment)
    assert _messages(deployment) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"text": ""}, "This field is required."),
        ({"page": "/a b"}, "Use an address without spaces"),
        ({"seconds": "9999"}, "less than or equal to 3600"),
        ({"audience": "nobody"}, "Select a valid choice"),
        ({"language": "tlh"}, "Select a valid choice"),
    ],
)
def test_message_that_makes_no_sense_is_shown_again_with_its_problem(
    owner: Any, deployment: Any, wrong: dict[str, str], said: str
) -> None:
    answer = browser(owner).post(_address(deployment, "new/"), FORM | wrong)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert _messages(deployment) == []


def test_too_many_messages_are_refused_in_words(owner: Any, deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proactive_messages, "MOST_MESSAGES", 1)
    make_proactive_message(deployment)
    answer = browser(owner).post(_address(deployment, "new/"), FORM)
    assert answer.status_code == 422
    assert "reached the maximum of 1" in answer.content.decode()


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_other_roles_neither_see_nor_change_them(tenant: Any, deployment: Any, role: str) -> None:
    client, message = browser(make_member(tenant, role)), make_proactive_message(deployment)
    for rest in ("", "new/", f"{message.pk}/"):
        assert client.get(_address(deployment, rest)).status_code == 403
    assert client.post(_address(deployment, f"{message.pk}/delete/")).status_code == 403
    assert len(_messages(deployment)) == 1


def test_message_of_another_tenant_or_chatbot_is_not_found(
    tenant: Any, other_tenant: Any, owner: Any, deployment: Any
) -> None:
    client, foreign = browser(owner), make_deployment(other_tenant)
    message = make_proactive_message(foreign)
    for place, message_id in ((foreign, message.pk), (deployment, message.pk), (deployment, uuid4())):
        assert client.get(_address(place, f"{message_id}/")).status_code == 404
        assert client.post(_address(place, f"{message_id}/delete/")).status_code == 404
    assert client.get(_address(foreign)).status_code == 404
    assert client.post(_address(foreign, "new/"), FORM).status_code == 404
    assert len(_messages(foreign)) == 1
