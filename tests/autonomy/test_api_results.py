"""Findings, proposals, precedents and notices over HTTP: strangers and foreign ids first."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.autonomy.models import Precedent
from kernel.tenancy import tenant_scope
from tests.autonomy.test_api import Api, key_of
from tests.factories.autonomy import House, make_house
from tests.factories.tenants import make_member

V1 = "/api/v1"
LISTS = ("findings", "proposals", "precedents", "notices")


@pytest.fixture
def done(house: House, tmp_path: Path) -> House:
    """A company whose task has found a contradiction and proposed an answer."""
    house.know(tmp_path, coats="# Coats\n\nYou can return a coat within 30 days of delivery.\n")
    house.know(tmp_path, shop="# Shop\n\nYou can return a coat within 14 days of delivery.\n")
    house.ask("Do you sharpen old knives?")
    for playbook in ("contradictions", "unanswered"):
        house.through(house.task(name=playbook, playbook=playbook, prompt="", route={"kind": "notify"}))
    return house


def listed(api: Api, name: str, **query: Any) -> list[dict[str, Any]]:
    answer = api("get", f"{V1}/{name}", **query)
    assert answer.status_code == 200, answer.content
    rows: list[dict[str, Any]] = answer.json()
    return rows


def test_nobody_without_a_login_reads_anything(done: House) -> None:
    assert {Api("wrong")("get", f"{V1}/{name}").status_code for name in LISTS} == {401}


def test_other_company_sees_and_changes_nothing(done: House, other_tenant: Any) -> None:
    mine, theirs = Api(key_of(done)), Api(key_of(make_house(other_tenant)))
    assert [listed(theirs, name) for name in LISTS] == [[], [], [], []]
    finding, proposal, precedent = (listed(mine, name)[0]["id"] for name in LISTS[:3])
    reads = [theirs("get", f"{V1}/findings/{finding}"), theirs("get", f"{V1}/proposals/{proposal}")]
    writes = [
        theirs("post", f"{V1}/findings/{finding}/resolve"),
        theirs("post", f"{V1}/proposals/{proposal}/dismiss"),
        theirs("post", f"{V1}/precedents/{precedent}/dismiss"),
        theirs("post", f"{V1}/notices/{listed(mine, 'notices')[0]['id']}/read"),
    ]
    assert {answer.status_code for answer in (*reads, *writes)} == {404}


def test_finding_is_listed_read_and_resolved_once(done: House) -> None:
    api = Api(key_of(done))
    (finding,) = listed(api, "findings", state="open")
    assert api("get", f"{V1}/findings/{finding['id']}").json()["title"] == finding["title"]
    first = api("post", f"{V1}/findings/{finding['id']}/resolve").json()
    again = api("post", f"{V1}/findings/{finding['id']}/resolve").json()
    assert first["state"] == "resolved"
    assert first["resolved_at"] == again["resolved_at"]
    assert listed(api, "findings", state="open") == []
    assert len(listed(api, "findings", state="resolved", task=finding["task"])) == 1


def test_viewer_reads_and_resolves_nothing(done: House) -> None:
    api = Api(user=make_member(done.tenant, "viewer"))
    (finding,) = listed(api, "findings")
    refused = api("post", f"{V1}/findings/{finding['id']}/resolve")
    assert refused.json()["error"]["code"] == "forbidden_role"


def test_proposal_and_precedent_are_dismissed(done: House) -> None:
    api = Api(key_of(done))
    proposal, precedent = listed(api, "proposals")[0], listed(api, "precedents")[0]
    assert api("post", f"{V1}/proposals/{proposal['id']}/dismiss").json()["state"] == "dismissed"
    assert api("post", f"{V1}/precedents/{precedent['id']}/dismiss").json()["state"] == "dismissed"
    assert [row["id"] for row in listed(api, "proposals", state="dismissed")] == [proposal["id"]]
    with tenant_scope(done.tenant):
        assert Precedent.objects.filter(state="dismissed").count() == 1


def test_notice_is_read_by_its_owner_only(done: House) -> None:
    owner, other = Api(user=done.owner), Api(user=make_member(done.tenant, "approver"))
    notice = listed(owner, "notices", unread="true")[0]
    assert other("post", f"{V1}/notices/{notice['id']}/read").status_code == 404
    assert owner("post", f"{V1}/notices/{notice['id']}/read").json()["read_at"] is not None
    assert notice["id"] not in {row["id"] for row in listed(owner, "notices", unread="true")}


@pytest.mark.parametrize("query", [{"state": "nonsense"}, {"task": "x"}])
def test_bad_question_is_refused_with_a_code(done: House, query: dict[str, str]) -> None:
    answer = Api(key_of(done))("get", f"{V1}/findings", **query)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid"


def test_unknown_ids_are_not_found(house: House) -> None:
    api = Api(key_of(house))
    assert api("get", f"{V1}/findings/{uuid4()}").status_code == 404
    assert api("get", f"{V1}/proposals/{uuid4()}").status_code == 404
