"""Conversations over the REST API: by a program, by members of every role, and with input that is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.approvals.enums import CardStatus
from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.inbox import handoff
from apps.inbox.models import Note
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import KeyScope
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.api import Api as Program
from tests.factories.api import code
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member

LIST = "/api/v1/sessions"


class Api(Program):
    """A program or a member who asks about conversations."""

    def get(self, path: str = LIST, **query: Any) -> Any:
        return super().get(path, **query)

    def change(self, session: ChatSession, *, if_match: str = "", **body: Any) -> Any:
        return self.patch(at(session), body, **({"if_match": if_match} if if_match else {}))

    def say(self, session: ChatSession, text: Any, *, key: str = "", to: str = "messages") -> Any:
        return self.send("post", at(session, to), {"text": text}, **({"idempotency_key": key} if key else {}))


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def at(session: ChatSession, part: str = "") -> str:
    return f"{LIST}/{session.pk}{'/' if part else ''}{part}"


def listed(api: Api, **query: Any) -> list[str]:
    return [row["id"] for row in api.get(**query).json()["sessions"]]


def actors(session: ChatSession) -> dict[str, str]:
    with tenant_scope(session.tenant_id):
        rows = AuditEntry.objects.filter(subject=f"session:{session.pk}")
        return dict(rows.values_list("event", "actor"))


def test_program_takes_over_answers_and_hands_back(api: Api, session: ChatSession) -> None:
    taken = api.change(session, owner="human")
    assert taken.status_code == 200
    assert taken.json()["owner"] == "human"
    assert taken.json()["owner_member"] is None
    said = api.say(session, " It does. ")
    assert said.status_code == 201
    assert said.json()["text"] == "It does."
    assert said.json()["sender"] == "human"
    assert said.json()["author"] is None
    assert api.change(session, owner="bot").json()["owner"] == "bot"
    told = actors(session)
    assert {told["taken_over"], told["staff_replied"], told["handed_back"]} == {api.actor}


def test_entries_are_listed_by_seq_without_gaps(api: Api, session: ChatSession) -> None:
    api.change(session, owner="human")
    api.say(session, "It does.")
    first = api.get(at(session, "messages"), limit=2).json()
    rest = api.get(at(session, "messages"), after_seq=first["next"], limit=2).json()
    assert [entry["seq"] for entry in first["messages"] + rest["messages"]] == [1, 2, 3]
    assert [entry["kind"] for entry in first["messages"]] == ["message", "owner"]
    assert rest["messages"][0]["text"] == "It does."
    assert rest["next"] is None
    assert api.get(at(session)).json()["seq"] == 3


def test_member_answers_under_their_name(tenant: Any, agent: Any, session: ChatSession) -> None:
    api, mine = Api(tenant, member=agent), {"id": str(agent.pk), "name": agent.display_name}
    assert api.change(session, owner="human").json()["owner_member"] == mine
    assert api.say(session, "Hello").json()["author"] == mine
    assert api.get(at(session, "messages"), after_seq=2).json()["messages"][0]["author"] == mine


def test_member_takes_over_from_a_program_and_no_program_from_a_member(
    tenant: Any, api: Api, agent: Any, session: ChatSession
) -> None:
    api.change(session, owner="human")
    page = browser(agent).get(f"/console/inbox/{session.pk}/").content.decode()
    assert "One of your systems is answering." in page
    assert f"/console/inbox/{session.pk}/take-over/" in page
    assert Api(tenant, member=agent).change(session, owner="human").json()["owner_member"]["id"] == str(agent.pk)
    assert code(api.change(session, owner="human")) == (409, "owned_by_other")
    assert code(api.change(session, owner="bot")) == (409, "owned_by_other")
    assert code(api.say(session, "Hello")) == (409, "owned_by_other")


def test_same_idempotency_key_says_it_once(tenant: Any, api: Api, session: ChatSession) -> None:
    api.change(session, owner="human")
    first, again = api.say(session, "It does.", key="k-1"), api.say(session, "It does.", key="k-1")
    assert again.status_code == 201
    assert again.json() == first.json()
    assert code(api.say(session, "It does not.", key="k-1")) == (409, "idempotency_key_reused")
    assert api.say(session, "It does.", key="k-2").json()["seq"] == first.json()["seq"] + 1
    assert Api(tenant).say(session, "Other key, other client.", key="k-1").status_code == 201
    assert code(api.say(session, "It does.", key="k" * 256)) == (400, "invalid")
    with tenant_scope(session.tenant_id):
        assert ChronicleEntry.objects.filter(session=session, sender="human").count() == 3


def test_notes_are_written_once_and_paged_newest_first(api: Api, session: ChatSession) -> None:
    for text in ("first", "second", "third"):
        api.say(session, text, to="notes")
    once = api.say(session, "fourth", key="k", to="notes")
    assert api.say(session, "fourth", key="k", to="notes").json() == once.json()
    assert code(api.say(session, "fifth", key="k", to="notes")) == (409, "idempotency_key_reused")
    page = api.get(at(session, "notes"), limit=3).json()
    assert [note["text"] for note in page["notes"]] == ["fourth", "third", "second"]
    rest = api.get(at(session, "notes"), limit=3, before=page["next"]).json()
    assert [note["text"] for note in rest["notes"]] == ["first"]
    assert rest["next"] == ""


def test_conversation_is_assigned_labelled_and_snoozed_in_one_change(
    api: Api, agent: Any, session: ChatSession
) -> None:
    old, new = (
        api.send("post", "/api/v1/labels", {"name": name, "colour": "red"}).json() for name in ("Refund", "Claim")
    )
    api.change(session, labels=[old["id"]])
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    answer = api.change(
        session, assignee=str(agent.pk), labels=[new["id"]], state="snoozed", snoozed_until=until.isoformat()
    ).json()
    assert answer["assignee"]["id"] == str(agent.pk)
    assert [label["name"] for label in answer["labels"]] == ["Claim"]
    assert answer["state"] == "snoozed"
    assert datetime.fromisoformat(answer["snoozed_until"]) == until
    assert api.change(session, state="snoozed").json()["snoozed_until"] is None
    assert api.change(session, state="resolved", assignee=None).json()["assignee"] is None
    assert api.change(session, state="open").json()["state"] == "open"


def test_refused_change_changes_nothing(api: Api, session: ChatSession) -> None:
    assert api.change(session, owner="human", labels=[str(uuid4())]).status_code == 404
    assert code(api.change(session, owner="human", assignee=str(uuid4()))) == (409, "assignee_unfit")
    past = (now() - timedelta(days=1)).isoformat()
    assert code(api.change(session, owner="human", state="snoozed", snoozed_until=past)) == (400, "bad_time")
    assert api.get(at(session)).json()["owner"] == "bot"


def test_change_of_an_older_version_is_refused(api: Api, session: ChatSession) -> None:
    version = api.get(at(session)).headers["ETag"]
    assert api.change(session, if_match=version, state="resolved").status_code == 200
    assert code(api.change(session, if_match=version, state="open")) == (412, "conversation_changed")
    version = api.get(at(session)).headers["ETag"]
    say(session, "One more thing")
    assert code(api.change(session, if_match=version, state="resolved")) == (412, "conversation_changed")
    answer = api.change(session, if_match="*", state="resolved")
    assert answer.json()["state"] == "resolved"
    assert answer.headers["ETag"] == api.get(at(session)).headers["ETag"]


def test_list_is_filtered_and_paged(tenant: Any, api: Api, agent: Any, session: ChatSession) -> None:
    other = make_session(make_deployment(tenant))
    moment = now().isoformat()
    say(other, "Where is my order?")
    label = api.send("post", "/api/v1/labels", {"name": "Refund", "colour": "red"}).json()["id"]
    api.change(session, labels=[label], assignee=str(agent.pk), state="resolved")
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(last_customer="C-1")
    one, two = str(session.pk), str(other.pk)
    assert listed(api) == [two, one]
    assert listed(api, state="open") == [two]
    assert listed(api, state="resolved") == [one]
    assert listed(api, label=label) == [one]
    assert listed(api, assignee=str(agent.pk)) == [one]
    assert listed(api, assignee="none") == [two]
    assert listed(api, deployment=str(other.deployment_id)) == [two]
    assert listed(api, customer="C-1") == [one]
    assert listed(api, customer="C-2") == []
    assert listed(api, updated_since=moment) == [two]
    assert listed(api, search="burst pipe") == [one]
    page = api.get(limit=1).json()
    assert [row["id"] for row in page["sessions"]] == [two]
    assert listed(api, limit=1, before=page["next"]) == [one]


def test_labels_and_canned_replies_are_created_replaced_and_deleted(api: Api) -> None:
    for path, name, body in (
        ("/api/v1/labels", "labels", {"name": "Refund", "colour": "red"}),
        ("/api/v1/canned-replies", "replies", {"name": "Refund", "text": "It is on its way."}),
    ):
        made = api.send("post", path, body)
        assert made.status_code == 201
        one = f"{path}/{made.json()['id']}"
        assert code(api.send("post", path, body)) == (409, "name_taken")
        assert code(api.send("post", path, {**body, "name": "n" * 41})) == (400, "bad_name")
        assert code(api.send("post", path, {**body, "icon": "x"})) == (400, "invalid")
        assert api.send("put", one, {**body, "name": "Money"}).json()["name"] == "Money"
        assert [row["name"] for row in api.get(path).json()[name]] == ["Money"]
        assert api.send("delete", one, {}).status_code == 204
        assert api.send("put", one, body).status_code == 404
        assert api.get(path).json()[name] == []
    assert code(api.send("post", "/api/v1/labels", {"name": "x", "colour": "pink"})) == (400, "bad_colour")


def test_wrong_input_is_refused_with_its_field(api: Api, session: ChatSession) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"status": "open"},
        {"owner": "me"},
        {"state": 7},
        {"labels": "x"},
        {"labels": ["x"]},
    ]
    bodies += [
        {"labels": ["x"]},
        {"assignee": "nobody"},
        {"snoozed_until": None},
        {"state": "snoozed", "snoozed_until": "later"},
    ]
    for body in bodies:
        assert code(api.change(session, **body)) == (400, "invalid")
    for query in ({"state": "bot"}, {"before": "x"}, {"limit": 201}, {"assignee": "me"}, {"updated_since": "x"}):
        assert code(api.get(**query)) == (400, "invalid")
    assert code(api.get(channel="widget")) == (400, "invalid")
    assert code(api.get(at(session, "messages"), after_seq=-1)) == (400, "invalid")
    assert code(api.get(at(session, "notes"), before="x")) == (400, "invalid")
    api.change(session, owner="human")
    for part in ("messages", "notes"):
        assert code(api.say(session, {"x": 1}, to=part)) == (400, "invalid")
        assert code(api.say(session, "", to=part)) == (400, "invalid")
        assert code(api.say(session, " \n", to=part)) == (400, "invalid_text")
        assert code(api.say(session, "x" * 4001, to=part)) == (400, "invalid_text")
        assert code(api.send("post", at(session, part), {"text": "Hello", "html": "x"})) == (400, "invalid")


def test_nothing_is_said_while_the_bot_answers_resolved_or_not(api: Api, session: ChatSession) -> None:
    assert code(api.say(session, "Hello")) == (409, "not_taken_over")
    api.change(session, state="resolved")
    assert code(api.say(session, "Hello")) == (409, "not_taken_over")


def test_conversation_of_another_company_is_not_found(tenant: Any, other_tenant: Any, session: ChatSession) -> None:
    for api in (Api(other_tenant), Api(other_tenant, member=make_member(other_tenant, "owner"))):
        assert listed(api) == []
        assert api.get(at(session)).status_code == 404
        assert api.change(session, owner="human").status_code == 404
        assert api.get(at(session, "messages")).status_code == 404
        assert api.say(session, "Hello").status_code == 404
        assert api.get(at(session, "notes")).status_code == 404
        assert api.say(session, "Hello", to="notes").status_code == 404
    with tenant_scope(tenant):
        assert not Note.objects.exists()


def test_viewer_reads_and_changes_nothing(tenant: Any, viewer: Any, session: ChatSession) -> None:
    api = Api(tenant, member=viewer)
    assert api.get(at(session)).status_code == 200
    assert api.get(at(session, "messages")).status_code == 200
    assert code(api.change(session, owner="human")) == (403, "forbidden_role")
    assert code(api.change(session, labels=[])) == (403, "forbidden_role")
    assert code(api.say(session, "Hello")) == (403, "forbidden_role")
    assert code(api.say(session, "Hello", to="notes")) == (403, "forbidden_role")
    assert code(api.send("post", "/api/v1/labels", {"name": "x", "colour": "red"})) == (403, "forbidden_role")


def test_key_with_a_scope_does_what_it_says_and_nothing_else(tenant: Any, session: ChatSession) -> None:
    reader, writer = Api(tenant, KeyScope.SESSIONS_READ), Api(tenant, KeyScope.SESSIONS_WRITE)
    assert reader.get(at(session)).status_code == 200
    assert code(reader.change(session, owner="human")) == (403, "forbidden_scope")
    assert code(reader.say(session, "Hello")) == (403, "forbidden_scope")
    assert code(writer.get(at(session))) == (403, "forbidden_scope")
    assert writer.change(session, owner="human").status_code == 200
    assert code(Api(tenant, KeyScope.MEMORY_READ).get()) == (403, "forbidden_scope")


def test_rivals_for_one_conversation_get_one_owner(tenant: Any, agent: Any, owner: Any, session: ChatSession) -> None:
    with tenant_scope(tenant):
        handoff.take_over(session.pk, agent)
    assert code(Api(tenant, member=owner).change(session, owner="human")) == (409, "owned_by_other")


@pytest.mark.parametrize("count", [1, 3])
def test_list_takes_the_same_queries_for_any_number(
    api: Api, deployment: Any, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        say(make_session(deployment), f"Question {number}")
    api.get()
    with django_assert_num_queries(12):
        assert len(listed(api)) == count


def test_requests_of_the_bot_are_withdrawn_by_who_has_taken_over(tenant: Any, other_tenant: Any) -> None:
    session = make_session(make_deployment(tenant))
    card = make_card(tenant, session_id=session.pk)
    api, withdraw = Api(tenant), at(session, "withdraw-requests")
    early = api.send("post", withdraw, {})
    assert early.status_code == 409
    assert early.json()["error"]["code"] == "not_yours"
    assert Api(other_tenant).send("post", withdraw, {}).status_code == 404
    assert Api(tenant, KeyScope.SESSIONS_READ).send("post", withdraw, {}).status_code == 403
    api.change(session, owner="human")
    assert api.send("post", withdraw, {}).json() == {"withdrawn": 1}
    with tenant_scope(tenant):
        assert Card.objects.get(pk=card.pk).status == CardStatus.WITHDRAWN
