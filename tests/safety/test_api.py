"""The operations over HTTP: strangers first, then bad input, then what introspection says."""

from __future__ import annotations

import json
import logging
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.safety.wire import OPERATIONS
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key, revoke_api_key
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.console import browser
from tests.factories.safety import DANGER, HARMLESS, TO_CONFIRM, Agent, Api, policy

STEP = {"element_name": "clerk", "next_action_hint": HARMLESS}


@pytest.fixture
def api(tenant: Any) -> Api:
    made = Api(tenant)
    made.call("execute_agent", element_name="clerk")
    return made


@pytest.mark.parametrize("key", ["", "Bearer sk_" + "a" * 43, "Bearer nonsense"])
def test_without_a_good_key_nothing_is_answered(owner: Any, key: str) -> None:
    """A login is no key either."""
    headers = {"authorization": key} if key else {}
    for member in (None, owner):
        answer = browser(member).post("/api/v1/safety/all", {}, content_type="application/json", headers=headers)
        assert code(answer) == (401, "not_authenticated")


def test_revoked_key_opens_nothing(api: Api, tenant: Any) -> None:
    with tenant_scope(tenant):
        revoke_api_key(api.row)
    assert code(api.call("introspect", query="operations")) == (401, "not_authenticated")


def test_narrowed_key_reaches_nothing_else(api: Api) -> None:
    headers = {"authorization": f"Bearer {api.key}"}
    assert code(api.client.get("/api/v1/gates", headers=headers)) == (403, "forbidden_scope")
    assert api.client.get("/api/v1/spending", headers=headers).status_code in (403, 404)


def test_key_for_confirming_alone_reports_nothing(tenant: Any) -> None:
    assert code(Api(tenant, KeyScope.SAFETY_CONFIRM).call("introspect", query="types")) == (403, "forbidden_scope")


def test_key_without_scopes_may_report(tenant: Any) -> None:
    with tenant_scope(tenant):
        key = create_api_key("Whole").key
    sent = {"operation": "introspect", "params": {"query": "operations"}}
    headers = {"authorization": f"Bearer {key}"}
    answer = browser(None).post("/api/v1/safety/read", sent, content_type="application/json", headers=headers)
    assert answer.json()["success"] is True


def test_step_is_answered_with_its_directive_and_a_caller_of_the_same_name_is_another_agent(
    api: Api, tenant: Any
) -> None:
    said = api.call("record_execution_step", "create", **STEP).json()
    assert said["success"] is True
    assert said["data"]["autonomy"]["continue"] is True
    other = Api(tenant)
    other.call("execute_agent", element_name="clerk")
    api.call("record_execution_step", **STEP | {"next_action_hint": DANGER})
    assert other.call("record_execution_step", **STEP).json()["data"]["autonomy"]["continue"] is True


def test_stopped_key_stays_stopped_by_every_name_and_way(api: Api) -> None:
    api.call("record_execution_step", **STEP | {"next_action_hint": DANGER})
    for surface in ("all", "execute"):
        assert code(api.call("execute_agent", surface, element_name="another")) == (403, "PERMISSION_DENIED")


def test_client_cannot_choose_who_it_is(api: Api) -> None:
    body = {"operation": "execute_agent", "params": {"element_name": "x"}, "_meta": {"principal": "user:1"}}
    assert api.post(body).json()["success"] is True
    assert code(api.call("execute_agent", element_name="x", principal="user:1")) == (400, "VALIDATION_UNKNOWN_PARAM")


@pytest.mark.parametrize(("name", "surface"), [(each.name, each.endpoint.value) for each in OPERATIONS.values()])
def test_operation_has_one_endpoint(api: Api, name: str, surface: str) -> None:
    for other in {"create", "read", "execute"} - {surface}:
        assert code(api.call(name, other)) == (400, "VALIDATION_WRONG_ENDPOINT")
    assert api.call(name, surface).json().get("error", {}).get("code") == "VALIDATION_MISSING_PARAM"


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else "x"


def begin(**params: Any) -> dict[str, Any]:
    return {"operation": "execute_agent", "params": params}


@pytest.mark.parametrize(
    ("body", "status", "refusal"),
    [
        ({}, 400, "VALIDATION_MISSING_PARAM"),
        ([], 400, "VALIDATION_INVALID_TYPE"),
        ({"operation": 5}, 400, "VALIDATION_INVALID_TYPE"),
        ({"operation": "drop_everything"}, 404, "NOT_FOUND_OPERATION"),
        ({"operation": "introspect", "params": []}, 400, "VALIDATION_INVALID_TYPE"),
        ({"operation": "introspect", "params": {"query": "secrets"}}, 400, "VALIDATION_INVALID_VALUE"),
        ({"operation": "introspect", "params": {"query": None}}, 400, "VALIDATION_MISSING_PARAM"),
        (begin(element_name=7), 400, "VALIDATION_INVALID_TYPE"),
        (begin(element_name="  "), 400, "VALIDATION_MISSING_PARAM"),
        (begin(element_name="a\x00b"), 400, "VALIDATION_INVALID_ENCODING"),
        (r'{"operation": "execute_agent", "params": {"element_name": "a\ud800"}}', 400, "VALIDATION_INVALID_ENCODING"),
        (b'{"operation": "execute_agent", "params": {"element_name": "a\xff"}}', 400, "VALIDATION_INVALID_ENCODING"),
        (begin(element_name="x" * 121), 413, "VALIDATION_PAYLOAD_TOO_LARGE"),
        (begin(element_name="clerk", parameters={"x": "read " * 210_000}), 413, "VALIDATION_PAYLOAD_TOO_LARGE"),
        (begin(element_name="clerk", parameters=nested(64)), 413, "VALIDATION_PAYLOAD_TOO_LARGE"),
        ({"operations": "x"}, 400, "VALIDATION_INVALID_TYPE"),
        ({"operations": [{"operation": "introspect"}] * 51}, 413, "VALIDATION_PAYLOAD_TOO_LARGE"),
    ],
    ids=range(17),
)
def test_bad_request_is_told_by_its_code(api: Api, body: Any, status: int, refusal: str) -> None:
    assert code(api.post(body)) == (status, refusal)


def test_camel_case_is_taken_and_params_win(api: Api) -> None:
    body = {"operation": "record_execution_step", "element_name": "nobody", "nextActionHint": HARMLESS}
    answer = api.post({**body, "params": {"element_name": "clerk", "stepDescription": "x"}})
    assert answer.json()["data"]["autonomy"]["continue"] is True


def test_unknown_parameter_is_named_with_the_valid_ones(api: Api) -> None:
    problem = api.call("record_execution_step", **STEP, risk=0, weight=1).json()["error"]
    assert problem["details"]["unknown_params"] == ["risk", "weight"]
    assert "next_action_hint" in problem["details"]["valid_params"]
    assert "'risk', 'weight'" in problem["message"]
    assert "next_action_hint" in problem["message"]
    problem = api.call("record_execution_step", **STEP, **{"x" * 5000: 1}).json()["error"]
    assert problem["code"] == "VALIDATION_UNKNOWN_PARAM"
    assert len(problem["message"]) < 400


@pytest.mark.parametrize("execution", ["nonsense", str(uuid4()), "00000000-0000-0000-0000-000000000000"])
def test_unknown_execution_is_not_found(api: Api, execution: str) -> None:
    answer = api.call("record_execution_step", **STEP, execution_id=execution)
    assert code(answer) == (404, "NOT_FOUND_RESOURCE")


def test_blank_execution_is_left_out(api: Api) -> None:
    answer = api.call("record_execution_step", **STEP, execution_id="")
    assert answer.json()["data"]["autonomy"]["continue"] is True


def test_batch_goes_in_order_and_halts_at_a_no(api: Api) -> None:
    def step(hint: str) -> dict[str, Any]:
        return {"operation": "record_execution_step", "params": STEP | {"next_action_hint": hint}}

    said = api.post({"operations": [step(HARMLESS), step(TO_CONFIRM), step(HARMLESS)]}).json()
    assert said["data"] is None and [each["success"] for each in said["results"]] == [True, True]
    assert said["summary"] == {"total": 3, "succeeded": 2, "failed": 0}


def test_answer_names_its_request_and_a_refusal_has_no_meta(api: Api) -> None:
    asked = {"operation": "introspect", "params": {"query": "types"}, "_request_id": "mine-1"}
    said = api.post(asked).json()["_meta"]
    assert said["request_id"] == "mine-1" and said["duration_ms"] >= 0
    assert set(api.call("nothing").json()) == {"success", "error"}


def protocol(api: Api) -> Any:
    return api.call("introspect", query="operations").json()["data"]["_protocol"]


def test_introspection_tells_whether_the_loop_is_on(api: Api, settings: Any) -> None:
    assert protocol(api)["capabilities"]["execution_safety_loop"] == "enforcing"
    settings.SAFETY_MODE = "disabled"
    assert protocol(api)["capabilities"]["execution_safety_loop"] == "disabled"


def test_introspection_tells_the_companys_own_mode(api: Api, tenant: Any) -> None:
    policy(tenant, mode="monitoring", max_steps=7)
    said = protocol(api)["capabilities"]
    assert said["execution_safety_loop"] == "monitoring"
    assert said["max_autonomous_steps"] == 7


def test_introspection_tells_what_can_be_set_and_what_holds_otherwise(api: Api) -> None:
    told = api.call("introspect", query="types", name=protocol(api)["capabilities"]["configuration"]).json()
    options = {each["name"]: each for each in told["data"]["type"]["fields"]}
    assert options["maxAutonomousSteps"] == {
        "name": "maxAutonomousSteps",
        "type": "number",
        "required": False,
        "default": 20,
        "minimum": 0,
        "maximum": 10_000,
    }
    assert {"mode", "riskTolerance", "deny", "requiresApproval", "autoApprove", "scores"} < set(options)


def test_every_named_type_is_told_and_unknown_names_are_null(api: Api) -> None:
    names = [each["name"] for each in api.call("introspect", query="types").json()["data"]["types"]]
    told = [api.call("introspect", query="types", name=name).json()["data"]["type"]["name"] for name in names]
    assert told == names
    assert {each.returns[0] for each in OPERATIONS.values()} <= set(names)
    assert api.call("introspect", query="operations", name="x").json()["data"] == {"operation": None}
    assert api.call("introspect", query="types", name="x").json()["data"] == {"type": None}


def test_code_is_nowhere_but_with_the_person(tenant: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A whole run: every answer, log line, audit row, row of ours and bus message is searched for the code."""
    caplog.set_level(logging.DEBUG)
    api = Api(tenant)
    said = [api.call("execute_agent", element_name="clerk")]
    said.append(api.call("record_execution_step", **STEP | {"next_action_hint": DANGER}))
    person = Agent(tenant, ref=f"api_key:{api.row.pk}")
    shown = [person.code(), person.code()]
    challenge = said[1].json()["data"]["autonomy"]["notifications"][0]["metadata"]["verificationId"]
    said.append(api.call("record_execution_step", **STEP))
    said.append(api.call("verify_challenge", challenge_id=challenge, code="0" * 32))
    shown.append(person.code())
    again = api.call("execute_agent", element_name="clerk")
    said += [again, api.call("introspect", query="operations")]
    challenge = again.json()["error"]["details"]["verification_id"]
    said.append(api.call("verify_challenge", challenge_id=challenge, code=shown[-1]))
    assert said[-1].json()["data"]["verified"] is True
    said.append(api.call("record_execution_step", **STEP))
    texts = [each.content.decode() + str(each.headers) for each in said]
    texts += [caplog.text, *written(tenant)]
    for secret in shown:
        assert not [text for text in texts if secret in text or secret.replace("-", "") in text]


def written(tenant: Any) -> list[str]:
    from django.apps import apps

    with tenant_scope(tenant):
        models = [AuditEntry, QueueMessage, *apps.get_app_config("safety").get_models()]
        return [json.dumps(list(model.objects.values()), default=str) for model in models]  # type: ignore[attr-defined]
