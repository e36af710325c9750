"""Tasks, sessions and webhooks over HTTP: strangers and foreign ids first (spec 003, contract autonomy A8)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.audit.models import AuditEntry
from apps.autonomy import queries, services
from apps.autonomy.enums import TriggerKind
from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.models import AutonomousSession, Outbox
from apps.guard.models import GuardedRun
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.autonomy import House, make_house
from tests.factories.console import browser
from tests.factories.guard import make_budget
from tests.factories.tenants import make_member
from tests.rivals import race

TASKS, SESSIONS, HOOKS, BUDGETS = "/api/v1/tasks", "/api/v1/autonomous-sessions", "/api/v1/webhooks", "/api/v1/budgets"
URL = "https://hooks.example.com/silas"


class Api:
    """A JSON client with an API key or a member's login."""

    def __init__(self, key: str = "", user: Any = None, *, csrf: bool = False) -> None:
        self.client: Client = browser(user, csrf=csrf)
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        if method == "get":
            return self.client.get(path, query, headers=self.headers)
        sent = {} if body is None else body
        return getattr(self.client, method)(path, sent, content_type="application/json", headers=self.headers)


@pytest.fixture
def api(house: House) -> Api:
    return Api(key_of(house))


def key_of(house: House) -> str:
    return str(house.do(create_api_key, "Test").key)


def new(house: House, **more: Any) -> dict[str, Any]:
    return {"name": "Nightly", "deployment": str(house.deployment.pk), "prompt": "Look at returns", **more}


def every_request(api: Api, task: Any, trigger: Any, session: Any, hook: Any, budget: Any) -> list[Any]:
    asked = [
        *[("get", f"{TASKS}/{task}{rest}") for rest in ("", "/runs", "/triggers")],
        *[("post", f"{TASKS}/{task}{rest}") for rest in ("/run-now", "/retry")],
        ("post", f"{TASKS}/{task}/triggers", {"kind": "interval", "spec": {"seconds": 60}}),
        ("patch", f"{TASKS}/{task}", {"name": "Mine now"}),
        ("delete", f"{TASKS}/{task}"),
        ("patch", f"{TASKS}/{task}/triggers/{trigger}", {"enabled": False}),
        ("delete", f"{TASKS}/{task}/triggers/{trigger}"),
        *[("get", f"{SESSIONS}/{session}{rest}") for rest in ("", "/receipt")],
        *[("post", f"{SESSIONS}/{session}{rest}") for rest in ("/halt", "/retry")],
        ("get", f"{HOOKS}/{hook}/deliveries"),
        ("delete", f"{HOOKS}/{hook}"),
        ("delete", f"{BUDGETS}/{budget}"),
    ]
    return [api(*each) for each in asked]


def test_without_a_good_key_nothing_is_answered(house: House) -> None:
    ids = [uuid4() for _ in range(5)]
    keys = ("", "sk_" + "a" * 43, "nonsense")
    answers = [answer for key in keys for answer in every_request(Api(key), *ids)]
    answers += [Api()("get", path) for path in (TASKS, SESSIONS, HOOKS, BUDGETS, f"{TASKS}/budget")]
    assert {code(answer) for answer in answers} == {(401, "not_authenticated")}


def test_another_tenants_ids_are_not_found(house: House, other_tenant: Any) -> None:
    other = make_house(other_tenant)
    task = other.task()
    trigger, session = other.trigger(task, TriggerKind.INTERVAL, seconds=60), other.run_now(task)
    hook, _ = other.do(services.save_webhook, URL, user=other.owner)
    ids = [row.pk for row in (task, trigger, session, hook, make_budget(other_tenant, "1"))]
    answers = every_request(Api(key_of(house)), *ids)
    assert {code(answer) for answer in answers} == {(404, "not_found")}


def test_another_tenants_rows_are_in_no_list(house: House, other_tenant: Any) -> None:
    other = make_house(other_tenant)
    other.run_now(other.task())
    api = Api(key_of(house))
    assert [api("get", path).json() for path in (TASKS, SESSIONS, HOOKS, BUDGETS)] == [[], [], [], []]


def test_another_tenants_rows_cannot_be_named(house: House, api: Api, other_tenant: Any) -> None:
    other = make_house(other_tenant)
    theirs = other.task()
    named = [
        {"deployment": str(other.deployment.pk)},
        {"route": {"kind": "chain_next", "task": str(theirs.pk)}},
        {"escalates_to": str(theirs.pk)},
        {"delegates_to": [str(theirs.pk)]},
        {"triggers": [{"kind": "chain", "spec": {"after": str(theirs.pk)}}]},
        {"triggers": [{"kind": "watch", "spec": {"collection": str(uuid4())}}]},
    ]
    answers = [api("post", TASKS, new(house, **each)) for each in named]
    assert {code(each) for each in answers} == {(404, "not_found")}
    assert house.tasks() == []


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_member_who_may_not_changes_nothing_and_reads_all(
    house: House, role: str, request: pytest.FixtureRequest
) -> None:
    session = house.run_now(house.task())
    api = Api(user=request.getfixturevalue(role))
    refused = [
        api("post", TASKS, new(house)),
        api("patch", f"{TASKS}/{session.task_id}", {"name": "x"}),
        api("delete", f"{TASKS}/{session.task_id}"),
        api("post", f"{TASKS}/{session.task_id}/run-now"),
        api("post", HOOKS, {"url": URL}),
        api("post", BUDGETS, {"period": "day", "limit_usd": "1"}),
        api("patch", f"{TASKS}/settings", {"enabled": False}),
    ]
    read = [api("get", path).status_code for path in (TASKS, SESSIONS, f"{SESSIONS}/{session.pk}/receipt")]
    assert {code(each) for each in refused} == {(403, "forbidden_role")}
    assert read == [200] * 3


def test_halt_is_open_to_an_agent_who_never_opted_in(house: House, agent: Any) -> None:
    session = house.run_now(house.task())
    answer = Api(user=agent)("post", f"{SESSIONS}/{session.pk}/halt")
    assert answer.status_code == 200
    assert answer.json()["status"] == "cancelled"


def test_viewer_cannot_halt(house: House, viewer: Any) -> None:
    session = house.run_now(house.task())
    assert code(Api(user=viewer)("post", f"{SESSIONS}/{session.pk}/halt")) == (403, "forbidden_role")


def test_login_without_the_csrf_token_changes_nothing(house: House) -> None:
    session = house.run_now(house.task())
    answer = Api(user=house.owner, csrf=True)("post", f"{SESSIONS}/{session.pk}/halt")
    assert answer.status_code == 403
    assert house.session(session.pk).status == "queued"


def test_halt_twice_says_so_both_times(house: House, api: Api) -> None:
    session = house.run_now(house.task())
    answers = [api("post", f"{SESSIONS}/{session.pk}/halt").json()["halting"] for _ in range(2)]
    assert answers == [True, False]


def test_key_acts_for_an_owner_and_is_named_in_the_log(house: House, api: Api) -> None:
    made = api("post", TASKS, new(house)).json()
    api("post", f"{TASKS}/{made['id']}/run-now")
    with tenant_scope(house.tenant):
        entries = AuditEntry.objects.filter(event__in=("task_saved", "autonomous_queued"))
        actors = {actor.partition(":")[0] for actor in entries.values_list("actor", flat=True)}
    assert made["owner"] == str(house.owner.pk)
    assert actors == {"api_key"}


def test_task_of_a_company_where_nobody_opted_in_is_refused(house: House, api: Api) -> None:
    house.do(services.opt_out, house.owner)
    assert code(api("post", TASKS, new(house))) == (403, "not_opted_in")


def test_nothing_begins_while_the_scheduler_is_off(house: House, api: Api) -> None:
    task = house.task()
    session = house.through(task)
    house.do(services.change_settings, user=house.owner, enabled=False)
    begin = (f"{TASKS}/{task.pk}/run-now", f"{TASKS}/{task.pk}/retry", f"{SESSIONS}/{session.pk}/retry")
    assert {code(api("post", path)) for path in begin} == {(503, "scheduler_disabled")}


def test_reads_are_open_while_the_scheduler_is_off(house: House, api: Api) -> None:
    house.do(services.change_settings, user=house.owner, enabled=False)
    assert {api("get", path).status_code for path in (TASKS, SESSIONS, f"{TASKS}/budget")} == {200}


WRONG: list[dict[str, Any]] = [
    {"name": ""},
    {"name": "x" * 121},
    {"name": None},
    {"prompt": ""},
    {"prompt": "x" * 8001},
    {"prompt": "a\u0000b"},
    {"playbook": "everything"},
    {"priority": 10},
    {"priority": -1},
    {"priority": "high"},
    {"limits": {"cost_usd": -1}},
    {"limits": {"cost_usd": "NaN"}},
    {"limits": {"cost_usd": 10**30}},
    {"limits": {"wishes": 3}},
    {"limits": []},
    {"route": {"kind": "nowhere"}},
    {"tool_allow": "all"},
    {"model": "nobody:knows"},
    {"skills": ["not-there"]},
    {"max_attempts": 0},
    {"triggers": [{"kind": "cron", "spec": {"schedule": "0 0 30 2 *"}}]},
    {"triggers": [{"kind": "cron", "spec": {}}]},
    {"triggers": [{"kind": "delegated", "spec": {}}]},
    {"triggers": [{"kind": "interval", "spec": {"seconds": 1}}]},
    {"triggers": [{"kind": "interval", "spec": {"seconds": 60}, "cap_usd": "-1"}]},
    {"triggers": [{"kind": "goal_check", "spec": {"goal": "x"}}]},
    {"triggers": "now"},
]


def test_wrong_words_are_refused_with_4xx_and_store_nothing(house: House, api: Api) -> None:
    answers = [api("post", TASKS, new(house, **each)) for each in WRONG]
    with tenant_scope(house.tenant):
        logged = AuditEntry.objects.filter(event="task_saved").count()
    taken = [each for each, answer in zip(WRONG, answers, strict=True) if answer.status_code not in (400, 422)]
    assert taken == []
    assert house.tasks() == []
    assert logged == 0


@pytest.mark.parametrize("body", ["[]", '"x"', "7", "null", "{", "\ud83d" * 0 + "[[[[", '{"name": {"a": 1}}'])
def test_body_that_is_no_task_is_refused(house: House, api: Api, body: str) -> None:
    answer = api.client.post(TASKS, body, content_type="application/json", headers=api.headers)
    assert answer.status_code == 400


@pytest.mark.parametrize("cap", ["-1", "NaN", "Infinity", "1e400", "x", [1], "0.1234567891"])
def test_absurd_cap_begins_nothing(house: House, api: Api, cap: Any) -> None:
    answer = api("post", f"{TASKS}/{house.task().pk}/run-now", {"cap_usd": cap})
    assert answer.status_code in (400, 422)
    assert house.sessions() == []


def test_zero_is_a_cap(house: House, api: Api) -> None:
    answer = api("post", f"{TASKS}/{house.task().pk}/run-now", {"cap_usd": 0})
    assert answer.status_code == 201
    assert answer.json()["limits"]["cost_usd"] == "0"


def test_task_is_set_up_changed_and_deleted(house: House, api: Api) -> None:
    wanted = new(house, priority=7, triggers=[{"kind": "cron", "spec": {"schedule": "0 2 * * *"}}])
    made = api("post", TASKS, wanted).json()
    changed = api("patch", f"{TASKS}/{made['id']}", {"name": "Otherwise"}).json()
    gone = api("delete", f"{TASKS}/{made['id']}").status_code
    assert made["status"] == "scheduled"
    assert changed["name"] == "Otherwise"
    assert changed["priority"] == 7
    assert gone == 204
    assert code(api("get", f"{TASKS}/{made['id']}")) == (404, "not_found")


def test_change_of_a_trigger_holds_and_another_tasks_is_not_found(house: House, api: Api) -> None:
    task, other = house.task(), house.task()
    made = api("post", f"{TASKS}/{task.pk}/triggers", {"kind": "interval", "spec": {"seconds": 60}, "cap_usd": "0.1"})
    at = f"{TASKS}/{task.pk}/triggers/{made.json()['id']}"
    off = api("patch", at, {"enabled": False}).json()
    uncapped = api("patch", at, {"cap_usd": None}).json()
    foreign = api("patch", at.replace(str(task.pk), str(other.pk)), {"enabled": True}).status_code
    assert off["enabled"] is False
    assert off["cap_usd"] == "0.1"
    assert uncapped["cap_usd"] is None
    assert foreign == 404


def test_quarantined_task_is_tried_again(house: House, api: Api) -> None:
    task = house.task()
    house.change(task, quarantined_at="2026-01-01T00:00Z", quarantine_reason="worker_lost")
    before = api("get", TASKS, status="dead_letter").json()
    answer = api("post", f"{TASKS}/{task.pk}/retry")
    assert [one["id"] for one in before] == [str(task.pk)]
    assert answer.status_code == 201
    assert code(api("post", f"{TASKS}/{task.pk}/retry")) == (409, "not_quarantined")


def test_lists_are_newest_first_and_kept_within_bounds(house: House, api: Api) -> None:
    task = house.task()
    made = [str(house.run_now(task).pk) for _ in range(3)]
    all_of_them = [one["id"] for one in api("get", SESSIONS, limit=9999).json()]
    one = [one["id"] for one in api("get", f"{TASKS}/{task.pk}/runs", limit=-5, offset=-1).json()]
    last = [one["id"] for one in api("get", SESSIONS, limit=1, offset=2, task=str(task.pk)).json()]
    assert all_of_them == made[::-1]
    assert one == made[:1:-1]
    assert last == made[:1]


@pytest.mark.parametrize("query", [{"limit": "x"}, {"offset": "1.5"}, {"status": "lost"}, {"task": "x"}])
def test_odd_question_is_a_400(house: House, api: Api, query: dict[str, str]) -> None:
    assert api("get", SESSIONS, **query).status_code == 400


def test_receipt_is_the_stored_one(house: House, api: Api) -> None:
    session = house.through(house.task())
    assert api("get", f"{SESSIONS}/{session.pk}/receipt").json() == session.receipt


def test_money_keeps_its_digits(house: House, api: Api) -> None:
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        GuardedRun.objects.filter(pk=session.run_id).update(cost_total=Decimal("0.000000042"))
    assert api("get", f"{SESSIONS}/{session.pk}").json()["cost_total_usd"] == "0.000000042"


def test_budget_says_what_is_left(house: House, api: Api) -> None:
    make_budget(house.tenant, "5")
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        AutonomousSession.objects.filter(pk=session.pk).update(
            status="running", ended_at=None, terminal_reason="", receipt=None
        )
        GuardedRun.objects.filter(pk=session.run_id).update(cost_total=Decimal("0.2"))
    told = api("get", f"{TASKS}/budget").json()
    assert told["company"][0]["limit_usd"] == "5"
    assert told["running"][0]["left"]["cost_usd"] == "0.300000000"


@pytest.mark.parametrize(("role", "shown"), [("owner", 1), ("approver", 1), ("agent", 0), ("viewer", 0)])
def test_limits_of_the_company_are_shown_to_whoever_decides(house: House, role: str, shown: int) -> None:
    make_budget(house.tenant, "5")
    told = Api(user=make_member(house.tenant, role=role))("get", f"{TASKS}/budget").json()
    assert len(told["company"]) == shown


def test_settings_hold_at_once(house: House, api: Api) -> None:
    told = api("patch", f"{TASKS}/settings", {"max_concurrent": 7, "limits": {"cost_usd": "0.1"}}).json()
    assert told["max_concurrent"] == 7
    assert house.do(queries.autonomy_settings).max_concurrent == 7


def test_secret_of_a_webhook_is_told_once(house: House, api: Api) -> None:
    made = api("post", HOOKS, {"url": URL, "events": ["task.failed"]}).json()
    listed = api("get", HOOKS).json()
    assert len(made["secret"]) > 30
    assert [one["id"] for one in listed] == [made["id"]]
    assert "secret" not in listed[0]


@pytest.mark.parametrize(
    "url", ["http://hooks.example.com/", "https://10.0.0.1/", "https://localhost/", "https://[::1"]
)
def test_webhook_that_leads_inside_is_refused(api: Api, settings: Any, url: str) -> None:
    settings.WEBHOOKS_PRIVATE = False
    assert code(api("post", HOOKS, {"url": url})) == (422, "webhook_url")


def test_deliveries_are_told_with_how_they_went(house: House, api: Api) -> None:
    made = api("post", HOOKS, {"url": URL, "events": ["task.scheduled"]}).json()
    house.run_now(house.task())
    with tenant_scope(house.tenant):
        Outbox.objects.update(state="given_up", error_code="http_500")
    (told,) = api("get", f"{HOOKS}/{made['id']}/deliveries").json()
    assert told["event"] == "task.scheduled"
    assert told["state"] == "given_up"
    assert told["error_code"] == "http_500"


def test_limit_is_set_changed_listed_and_taken_away(house: House, api: Api) -> None:
    first = api("post", BUDGETS, {"period": "day", "limit_usd": "5"}).json()
    second = api("post", BUDGETS, {"period": "day", "limit_usd": "0.000000001"}).json()
    listed = [(one["id"], one["limit_usd"], one["holder"]) for one in api("get", BUDGETS).json()]
    gone = api("delete", f"{BUDGETS}/{second['id']}").status_code
    assert listed == [(first["id"], "0.000000001", "tenant")]
    assert gone == 204
    assert api("get", BUDGETS).json() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit_usd": "-1"},
        {"limit_usd": "NaN"},
        {"period": "year"},
        {"holder": "platform"},
        {"holder": "deployment"},
        {"holder": "deployment", "ref": str(uuid4())},
        {"holder": "task"},
    ],
)
def test_limit_that_makes_no_sense_is_refused(house: House, api: Api, wrong: dict[str, Any]) -> None:
    answer = api("post", BUDGETS, {"period": "day", "limit_usd": "1", **wrong})
    assert 400 <= answer.status_code < 500
    assert api("get", BUDGETS).json() == []


def test_changes_of_two_people_at_once_are_both_kept(house: House) -> None:
    """Fields that are not sent keep their current value, including a change made a moment ago."""
    task, keys = house.task(limits={"cost_usd": "0.50"}), [key_of(house), key_of(house)]
    said: list[dict[str, Any]] = [{"limits": {"cost_usd": "0.01"}}, {"priority": 9}]
    race(
        *[
            lambda key=key, body=body: Api(key)("patch", f"{TASKS}/{task.pk}", body)
            for key, body in zip(keys, said, strict=True)
        ]
    )
    (left,) = house.tasks()
    assert left.limits["cost_usd"] == "0.01"
    assert left.priority == 9


def test_ready_automations_are_listed(api: Api) -> None:
    listed = api("get", "/api/v1/task-templates").json()
    assert [template["playbook"] for template in listed] == [template.key for template in TEMPLATES]
    assert all(template["title"] and template["schedule"] for template in listed)
    assert Api()("get", "/api/v1/task-templates").status_code == 401
