"""Lists as CSV files: the same rows and filters as their pages, for the same roles, and no formula in a cell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connections
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.console import csv_response
from apps.console.pages.exports import lists
from apps.console.pages.exports.lists import LISTS
from apps.contacts import services
from apps.contacts.enums import ContactSource
from apps.inbox.models import Label, SessionLabel
from apps.knowledge.enums import GapStatus
from apps.knowledge.models import GapTopic
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import tenant_scope
from llm.embedding import DIMENSIONS
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member, make_tenant
from tests.factories.work import Desk, make_desk

ROLES = ("owner", "approver", "agent", "viewer")


@dataclass
class House:
    desk: Desk
    members: dict[str, Any]
    stranger: Any
    session: ChatSession

    def file(self, name: str, *, by: Any = "owner", **query: str) -> Any:
        return browser(self.members.get(by, by)).get(reverse("console-list-file", args=[name]), query)

    def rows(self, name: str, *, by: Any = "owner", **query: str) -> list[dict[str, str]]:
        answer = self.file(name, by=by, **query)
        assert answer.status_code == 200, answer.content
        content = answer.content
        answer.close()
        assert content.startswith(b"\xef\xbb\xbf")
        return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


@pytest.fixture(scope="module")
def built(migrated: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with django_db_blocker.unblock():
        tenant = make_tenant()
        members = {role: make_member(tenant, role) for role in ROLES}
        desk = make_desk(tenant, tmp_path_factory.mktemp("skill"))
        desk.waiting()
        desk.approved(members["owner"], value=40)
        session = make_session(desk.deployment)
        say(session, '=HYPERLINK("https://evil.example", "Müller")')
        with tenant_scope(tenant):
            SessionLabel.objects.create(session=session, label=Label.objects.create(name="=1+1"))
            moment = now()
            fields = {"centroid": [0.0] * DIMENSIONS, "first_at": moment, "last_at": moment}
            GapTopic.objects.create(question="@SUM(A1)", status=GapStatus.OPEN, **fields)
            GapTopic.objects.create(question="Old", status=GapStatus.DISMISSED, **fields)
            for name in ("-2+3", "Zoë", "+49"):
                services.save_contact(None, actor="api_key:test", source=ContactSource.API, name=name)
        yield House(desk, members, make_member(make_tenant(), "owner"), session)
        connections.close_all()


@pytest.fixture
def house(built: House, database: None) -> House:
    return built


@pytest.mark.parametrize("name", LISTS)
def test_roles_of_the_page_get_the_file_and_nobody_else(house: House, name: str) -> None:
    allowed = {"members": {"owner"}, "documents": {"owner", "approver"}, "gaps": {"owner", "approver"}}
    answers = {role: house.file(name, by=role) for role in ROLES}
    assert {role for role, answer in answers.items() if answer.status_code == 200} == allowed.get(name, set(ROLES))
    assert {answer.status_code for answer in answers.values()} <= {200, 403}
    for answer in answers.values():
        answer.close()


def test_no_cell_is_a_formula(house: House) -> None:
    (talk,) = house.rows("conversations", q="hyperlink")
    assert talk["last_message"] == '\'=HYPERLINK("https://evil.example", "Müller")'
    assert talk["labels"] == "'=1+1"
    assert {row["name"] for row in house.rows("contacts")} == {"'-2+3", "Zoë", "'+49"}
    assert [row["question"] for row in house.rows("gaps")] == ["'@SUM(A1)"]


def test_file_follows_the_filters_of_its_page(house: House) -> None:
    assert [row["name"] for row in house.rows("contacts", search="Zo")] == ["Zoë"]
    assert house.rows("contacts", state="verified") == []
    assert [row["question"] for row in house.rows("gaps", status="dismissed")] == ["Old"]
    assert house.rows("conversations", status="resolved") == []
    assert len(house.rows("conversations", q="hyperlink")) == 1
    assert {row["state"] for row in house.rows("cards")} == {"open", "decided"}
    (decided,) = house.rows("cards", state="decided")
    assert decided["decided_by"] == house.members["owner"].display_name
    assert decided["verdict"] == "approved"
    assert {row["status"] for row in house.rows("work", status="pending")} == {"pending"}
    assert {row["email"] for row in house.rows("members")} == {user.email for user in house.members.values()}
    assert {row["event"] for row in house.rows("audit", show="decisions")} >= {"card_decided"}
    assert house.file("documents", collection="x").status_code == 404
    assert house.file("nothing").status_code == 404


def test_file_has_every_page_of_the_list_and_is_audited(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "AT_ONCE", 2)
    assert len({row["id"] for row in house.rows("contacts", by="viewer")}) == 3
    seqs = [int(row["seq"]) for row in house.rows("audit", show="everything")]
    assert seqs == sorted(seqs, reverse=True)
    assert len(seqs) == len(set(seqs)) > 4
    with tenant_scope(house.desk.tenant):
        entries = AuditEntry.objects.filter(event="list_exported", actor=house.members["viewer"].actor)
        data = [json.loads(each) for each in entries.values_list("data", flat=True)]
    assert {"list": "contacts", "rows": 3} in data


def test_too_long_list_is_refused_as_a_whole(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_response, "MAX_ROWS", 2)
    assert house.file("contacts").status_code == 422
    assert len(house.rows("contacts", search="Zo")) == 1


def test_another_company_reads_nothing(house: House) -> None:
    for name in ("conversations", "contacts", "cards", "work", "documents", "gaps"):
        assert house.rows(name, by=house.stranger) == [], name
    assert str(house.session.pk) not in str(house.rows("audit", by=house.stranger, show="everything"))
