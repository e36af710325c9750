"""What is read with an `ETag` is changed and deleted only at that version, when the request says so with `If-Match`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.knowledge import sources
from apps.knowledge.services import open_collection
from apps.knowledge.sources import NewSource
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.tenants import make_member


@dataclass(frozen=True)
class Resource:
    """`body` makes one over the API; without it, it is a source. `change` makes another version of it."""

    path: str
    change: dict[str, Any]
    reading: KeyScope
    writing: KeyScope
    body: dict[str, Any] | None = None
    verb: str = "put"

    def made(self, tenant: Any) -> str:
        """The address of a new one."""
        if self.body is None:
            return f"{self.path}/{make_source(tenant)}"
        made = Api(tenant).send("post", self.path, self.body)
        assert made.status_code == 201, made.content
        assert made["ETag"] == Api(tenant).get(f"{self.path}/{made.json()['id']}")["ETag"]
        return f"{self.path}/{made.json()['id']}"


def make_source(tenant: Any) -> UUID:
    with tenant_scope(tenant):
        home = open_collection("help")
        new = NewSource("website", "https://help.example.com/", 24)
        return sources.add_source(home.pk, new, actor="user:1").pk


_CONVERSATIONS = (KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
_SETTINGS = (KeyScope.SETTINGS_READ, KeyScope.SETTINGS_WRITE)
_KNOWLEDGE = (KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE)
_STEPS = [{"do": "resolve", "value": ""}]
LABEL = Resource("/api/v1/labels", {"name": "B", "colour": "red"}, *_CONVERSATIONS, {"name": "A", "colour": "red"})
REPLY = Resource("/api/v1/canned-replies", {"name": "A", "text": "Ho"}, *_CONVERSATIONS, {"name": "A", "text": "Hi"})
TEAM = Resource("/api/v1/teams", {"name": "A", "capacity": 3}, *_SETTINGS, {"name": "A"})
MACRO = Resource("/api/v1/macros", {"name": "B", "steps": _STEPS}, *_CONVERSATIONS, {"name": "A", "steps": _STEPS})
_VIEW = {"page": "inbox", "parameters": {"status": "open"}}
VIEW = Resource("/api/v1/saved-views", {"name": "B", **_VIEW}, *_CONVERSATIONS, {"name": "A", **_VIEW})
RULE = Resource(
    "/api/v1/inbox-rules",
    {"is_active": True},
    *_SETTINGS,
    {"name": "A", "trigger": "message", "steps": _STEPS},
    verb="patch",
)
SLA = Resource("/api/v1/sla-policies", {"first_reply": 20}, *_SETTINGS, {"name": "A", "first_reply": 30}, verb="patch")
SOURCE = Resource("/api/v1/knowledge/sources", {"enabled": False}, *_KNOWLEDGE, verb="patch")

resources = pytest.mark.parametrize(
    "of", [LABEL, REPLY, TEAM, MACRO, VIEW, RULE, SLA, SOURCE], ids=lambda each: each.path[8:]
)


@resources
def test_change_is_made_at_the_version_that_was_read(tenant: Any, of: Resource) -> None:
    api, one = Api(tenant), of.made(tenant)
    read = api.get(one)
    assert read.status_code == 200
    assert read["Cache-Control"] == "no-store"
    changed = api.send(of.verb, one, of.change, **{"if-match": read["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != read["ETag"]
    now = api.get(one)
    assert now["ETag"] == changed["ETag"]
    assert {name: now.json()[name] for name in of.change} == of.change
    assert api.send("delete", one, {}, **{"if-match": now["ETag"]}).status_code == 204
    assert api.get(one).status_code == 404


@resources
def test_change_and_deletion_of_an_older_version_are_refused(tenant: Any, of: Resource) -> None:
    api, one = Api(tenant), of.made(tenant)
    stale = api.get(one)["ETag"]
    now = api.send(of.verb, one, of.change)["ETag"]
    assert code(api.send(of.verb, one, of.change, **{"if-match": stale})) == (412, "changed_meanwhile")
    assert code(api.send("delete", one, {}, **{"if-match": stale})) == (412, "changed_meanwhile")
    assert api.get(one)["ETag"] == now
    assert api.send("delete", one, {}, **{"if-match": f"{stale}, {now}"}).status_code == 204


@resources
def test_foreign_and_unknown_ids_are_not_found(tenant: Any, other_tenant: Any, of: Resource) -> None:
    one = of.made(tenant)
    etag = Api(tenant).get(one)["ETag"]
    for api in (Api(other_tenant), Api(other_tenant, member=make_member(other_tenant, "owner"))):
        assert code(api.get(one)) == (404, "not_found")
        assert code(api.send(of.verb, one, of.change, **{"if-match": etag})) == (404, "not_found")
        assert code(api.send("delete", one, {}, **{"if-match": etag})) == (404, "not_found")
    assert code(Api(tenant).get(f"{of.path}/{uuid4()}")) == (404, "not_found")
    assert Api(tenant).get(one)["ETag"] == etag


@resources
def test_reading_and_changing_need_their_scopes(tenant: Any, of: Resource) -> None:
    one = of.made(tenant)
    assert Api(tenant, of.reading).get(one).status_code == 200
    reader, stranger = Api(tenant, of.reading), Api(tenant, KeyScope.AUDIT_READ)
    assert code(stranger.get(one)) == (403, "forbidden_scope")
    assert code(reader.send(of.verb, one, of.change)) == (403, "forbidden_scope")
    assert code(reader.send("delete", one, {})) == (403, "forbidden_scope")
    assert Api(tenant, of.writing).send(of.verb, one, of.change).status_code == 200


@pytest.mark.parametrize("of", [LABEL, REPLY, TEAM, MACRO, VIEW, RULE, SLA], ids=lambda each: each.path[8:])
def test_viewer_reads_and_is_refused_before_the_version_is_looked_at(tenant: Any, viewer: Any, of: Resource) -> None:
    one, api = of.made(tenant), Api(tenant, member=viewer)
    assert api.get(one).status_code == 200
    assert code(api.send(of.verb, one, of.change, **{"if-match": '"other"'})) == (403, "forbidden_role")
    assert code(api.send("delete", one, {}, **{"if-match": '"other"'})) == (403, "forbidden_role")


def test_personal_macro_of_a_colleague_is_not_found(tenant: Any, agent: Any) -> None:
    mine = {"name": "Mine", "is_personal": True, "steps": _STEPS}
    made = Api(tenant, member=agent).send("post", MACRO.path, mine).json()
    one = f"{MACRO.path}/{made['id']}"
    assert Api(tenant, member=agent).get(one).json()["owner"]["id"] == str(agent.pk)
    assert code(Api(tenant).get(one)) == (404, "not_found")
    assert code(Api(tenant, member=make_member(tenant, "owner")).get(one)) == (404, "not_found")


def test_run_of_a_source_is_no_other_version(tenant: Any) -> None:
    one = SOURCE.made(tenant)
    api, etag = Api(tenant), Api(tenant).get(one)["ETag"]
    with tenant_scope(tenant):
        row = sources.lock_source(UUID(one.rpartition("/")[2]))
        row.report = {"counts": {"added": 3}}
        row.save(update_fields=["report"])
    assert api.get(one)["ETag"] == etag
