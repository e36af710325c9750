"""Gates over HTTP: strangers first, then owners and their API keys."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.audit.models import AuditEntry
from apps.gates.models import Gate
from apps.gates.queries import active_gates
from apps.gates.services import save_gate, write_version
from apps.tenants.services import create_api_key, revoke_api_key
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.gates.test_rows import spec

CONTENT = {"on": "every_user_message", "type": "regex", "config": {"pattern": "."}}
NEW = {"name": "words", "content": CONTENT}


def key_of(tenant: Any) -> str:
    with tenant_scope(tenant):
        return create_api_key("Test").key


class Api:
    """A client that speaks JSON, with an API key or somebody's login."""

    def __init__(self, key: str = "", user: Any = None, *, csrf: bool = False) -> None:
        self.client: Client = browser(user, csrf=csrf)
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    def get(self, path: str = "", **query: Any) -> Any:
        return self.client.get(f"/api/v1/gates{path}", query, headers=self.headers)

    def post(self, path: str = "", body: Any = None) -> Any:
        sent = {} if body is None else body
        return self.client.post(f"/api/v1/gates{path}", sent, content_type="application/json", headers=self.headers)


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(key_of(tenant))


@pytest.fixture
def gate(tenant: Any) -> Gate:
    with tenant_scope(tenant):
        saved = save_gate(spec("words"))
        write_version(spec("words", config={"pattern": "x"}))
        return saved


def every_request(api: Api, gate_id: Any) -> list[Any]:
    moves = [api.post(f"/{gate_id}/{word}", {"version": 1}) for word in ("activate", "roll-back", "retire", "dry-run")]
    reads = [api.get(f"/{gate_id}"), api.get(f"/{gate_id}/diff", before=1, after=2)]
    return [*moves, *reads, api.post(f"/{gate_id}/versions", {"content": CONTENT})]


@pytest.mark.parametrize("key", ["", "sk_" + "a" * 43, "sk_short", "nonsense"])
def test_without_a_good_key_nothing_is_answered(gate: Gate, key: str) -> None:
    answers = [*every_request(Api(key), gate.pk), Api(key).get(), Api(key).post("", NEW)]
    assert {code(answer) for answer in answers} == {(401, "not_authenticated")}


@pytest.mark.parametrize("who", ["approver", "agent", "viewer", "stranger"])
def test_others_than_owners_are_refused(gate: Gate, who: str, request: pytest.FixtureRequest) -> None:
    api = Api(user=request.getfixturevalue(who))
    answers = [*every_request(api, gate.pk), api.get(), api.post("", NEW)]
    assert {code(answer) for answer in answers} == {(403, "forbidden_role")}


def test_gate_of_another_tenant_is_not_found(gate: Gate, other_tenant: Any) -> None:
    answers = every_request(Api(key_of(other_tenant)), gate.pk)
    assert {code(answer) for answer in answers} == {(404, "not_found")}


def test_unknown_gate_is_not_found(api: Api) -> None:
    assert {code(answer) for answer in every_request(api, uuid4())} == {(404, "not_found")}


def test_revoked_key_opens_nothing(tenant: Any) -> None:
    with tenant_scope(tenant):
        made = create_api_key("Test")
        revoke_api_key(made.row)
    assert code(Api(made.key).get()) == (401, "not_authenticated")


def test_bad_key_is_refused_even_with_an_owners_login(owner: Any) -> None:
    assert code(Api("sk_" + "a" * 43, user=owner).get()) == (401, "not_authenticated")


def test_login_without_csrf_token_changes_nothing(tenant: Any, owner: Any, gate: Gate) -> None:
    answer = Api(user=owner, csrf=True).post(f"/{gate.pk}/retire")
    with tenant_scope(tenant):
        assert answer.status_code == 403
        assert Gate.objects.get().status == "active"


def test_owner_who_is_logged_in_sees_the_gates(owner: Any, gate: Gate) -> None:
    assert [one["name"] for one in Api(user=owner).get().json()] == ["words"]


def test_list_shows_nothing_of_another_tenant(gate: Gate, other_tenant: Any) -> None:
    assert Api(key_of(other_tenant)).get().json() == []


def test_new_gate_is_a_draft(api: Api, tenant: Any, deployment: Any) -> None:
    made = api.post("", {**NEW, "deployment": str(deployment.pk), "note": "First"}).json()
    assert made["status"] == "draft"
    assert made["active"] is None
    assert made["versions"][0]["note"] == "First"


def test_new_gate_on_a_foreign_deployment_is_not_found(api: Api, other_tenant: Any) -> None:
    assert code(api.post("", {**NEW, "deployment": str(make_deployment(other_tenant).pk)})) == (404, "not_found")


def test_new_gate_of_a_known_name_is_refused(api: Api, gate: Gate) -> None:
    assert code(api.post("", NEW)) == (409, "gate_changed")


BAD_CONTENTS: list[dict[str, Any]] = [
    {},
    {"on": "whenever"},
    {**CONTENT, "config": {"pattern": "("}},
    {**CONTENT, "config": {"pattern": "a\0b"}},
    {**CONTENT, "config": {"pattern": "\ud800"}},
    {**CONTENT, "config": {"patern": "."}},
    {**CONTENT, "strange": 1},
    {**CONTENT, "provider": "custom", "check": "nobody", "config": {}},
    {**CONTENT, "type": "numeric_range", "config": {}, "auto_approve": {"min": 5, "max": 1}},
    {**CONTENT, "type": "numeric_range", "config": {}, "auto_approve": {"min": "a", "max": 1}},
    {**CONTENT, "config": {"pattern": "a" * 30_000}},
    {**CONTENT, "allowed_values": ["x" * 30_000]},
    {**CONTENT, "name": "other", "on": 7},
]


@pytest.mark.parametrize("content", BAD_CONTENTS)
def test_content_that_is_no_gate_is_refused_and_not_stored(api: Api, tenant: Any, content: dict[str, Any]) -> None:
    answer = api.post("", {"name": "words", "content": content})
    with tenant_scope(tenant):
        assert code(answer) == (422, "gate_invalid")
        assert not Gate.objects.exists()


@pytest.mark.parametrize(
    "body",
    ["nonsense", "[]", "7", {"name": "a b", "content": CONTENT}, {"name": "a"}, {"name": "a", "content": "x"}]
    + [{**NEW, "order": -1}, {**NEW, "order": 99_999}, {**NEW, "note": "a\0"}, {**NEW, "deployment": "x"}],
)
def test_request_that_is_none_is_refused(api: Api, body: Any) -> None:
    assert code(api.post("", body))[0] == 400


def test_version_is_written_and_not_in_force(api: Api, tenant: Any, gate: Gate, deployment: Any) -> None:
    content = {**CONTENT, "config": {"pattern": "y"}}
    made = api.post(f"/{gate.pk}/versions", {"content": content, "seen": 2}).json()
    with tenant_scope(tenant):
        assert made["number"] == 3
        assert active_gates(deployment.pk).value[0].config == {"pattern": "."}


def test_version_by_somebody_who_missed_one_is_refused(api: Api, gate: Gate) -> None:
    answer = api.post(f"/{gate.pk}/versions", {"content": {**CONTENT, "config": {"pattern": "y"}}, "seen": 1})
    assert code(answer) == (409, "gate_changed")
    assert answer.json()["error"]["extra"]["newest"] == 2


def test_activation_puts_a_version_in_force(api: Api, tenant: Any, gate: Gate, deployment: Any) -> None:
    api.post(f"/{gate.pk}/activate", {"version": 2})
    with tenant_scope(tenant):
        assert active_gates(deployment.pk).value[0].config == {"pattern": "x"}


def test_roll_back_answers_with_the_new_version(api: Api, gate: Gate) -> None:
    api.post(f"/{gate.pk}/activate", {"version": 2})
    assert api.post(f"/{gate.pk}/roll-back", {"version": 1}).json()["active"] == 3


def test_retirement_takes_it_out_of_force(api: Api, gate: Gate) -> None:
    assert api.post(f"/{gate.pk}/retire").json()["status"] == "retired"


@pytest.mark.parametrize("word", ["activate", "roll-back", "dry-run"])
@pytest.mark.parametrize("version", [0, -1, "x", None])
def test_move_to_what_is_no_number_is_refused(api: Api, gate: Gate, word: str, version: Any) -> None:
    assert code(api.post(f"/{gate.pk}/{word}", {"version": version})) == (400, "invalid")


def test_diff_says_what_is_different(api: Api, gate: Gate) -> None:
    found = api.get(f"/{gate.pk}/diff", before=1, after=2).json()
    assert found == [{"field": "config.pattern", "title": "Setting: pattern", "before": ".", "after": "x"}]


def test_dry_run_answers_with_ids_and_no_text(api: Api, gate: Gate, deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "Hello there")
    answer = api.post(f"/{gate.pk}/dry-run", {"version": 2, "deployment": str(deployment.pk)})
    (change,) = answer.json()["changes"]
    assert change["place"] == str(session.pk)
    assert change["seq"] == 1
    assert change["after"]["code"] == "no_match"
    assert "Hello" not in answer.content.decode()


@pytest.mark.parametrize("body", [{"version": 1, "messages": 501}, {"version": 1, "deployment": "x"}])
def test_dry_run_out_of_bounds_is_refused(api: Api, gate: Gate, body: dict[str, Any]) -> None:
    assert code(api.post(f"/{gate.pk}/dry-run", body)) == (400, "invalid")


def test_change_by_a_key_is_on_record_as_the_keys(api: Api, tenant: Any, gate: Gate) -> None:
    api.post(f"/{gate.pk}/retire")
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event="gate_retired").actor.startswith("api_key:")
