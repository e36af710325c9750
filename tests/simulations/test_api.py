"""REST API of simulations: suites, scenarios, and runs that are started, read, stopped and resumed."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from apps.tenants.enums import KeyScope
from kernel.tenancy import in_thread
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.simulations import HELLO, make_suite, simulated

SUITES, RUNS = "/api/v1/simulation-suites", "/api/v1/simulations"


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant)


def test_suite_is_created_written_run_stopped_and_resumed(api: Api, deployment: Any) -> None:
    suite = api.post(SUITES, {"deployment": str(deployment.pk), "name": "Refunds"})
    assert suite.status_code == 201
    address = f"{SUITES}/{suite.json()['id']}"
    assert api.post(f"{address}/scenarios", {"name": "hello", **HELLO}).status_code == 200
    assert api.post(f"{address}/scenarios", {"name": "hello", "goal": "A refund", **HELLO}).status_code == 200
    scenarios = api.get(address).json()["scenarios"]
    assert [scenario["goal"] for scenario in scenarios] == ["A refund"]
    started = api.post(RUNS, {"suite": suite.json()["id"], "budget_usd": "0.5"})
    assert started.status_code == 201
    assert started.json()["status"] == "queued"
    run = f"{RUNS}/{started.json()['id']}"
    stopped = api.post(f"{run}/stop").json()
    assert stopped["status"] == "stopped"
    assert [result["outcome"] for result in stopped["results"]] == ["left_out"]
    assert api.post(f"{run}/stop").json()["error"]["code"] == "simulation_ended"
    assert api.post(f"{run}/resume").json()["status"] == "queued"
    assert api.post(f"{run}/resume").json()["error"]["code"] == "simulation_empty"


async def test_run_says_what_changed_since_the_run_before(api: Api, deployment: Any) -> None:
    suite = await in_thread(make_suite, deployment)
    first = await simulated(deployment, suite)
    wrong = {"name": "hello", **HELLO, "checks": [{"kind": "says", "words": ["a word it does not say"]}]}
    await in_thread(api.post, f"{SUITES}/{suite.pk}/scenarios", wrong)
    second = await simulated(deployment, suite)
    detail = (await in_thread(api.get, f"{RUNS}/{second.pk}")).json()
    assert detail["passed"] is False
    assert detail["compared_with_id"] == str(first.pk)
    assert detail["differences"] == [{"name": "hello", "change": "fails"}]
    assert detail["results"][0]["conversation"][0]["visitor"] == "Hello"


def test_release_that_would_be_published_is_simulated_if_it_has_not_changed(api: Api, deployment: Any) -> None:
    suite = make_suite(deployment)
    working_copy = api.get(f"/api/v1/deployments/{deployment.pk}/releases").json()["working_copy"]
    started = api.post(RUNS, {"suite": str(suite.pk), "release": working_copy})
    assert started.json()["release"] == working_copy
    stale = api.post(RUNS, {"suite": str(suite.pk), "release": "0" * 64})
    assert stale.status_code == 409
    assert stale.json()["error"]["code"] == "release_changed"


def test_suite_is_made_from_the_catalogue_of_attacks(api: Api, deployment: Any) -> None:
    made = api.post(SUITES, {"deployment": str(deployment.pk), "origin": "attacks"})
    assert made.status_code == 201
    assert {scenario["origin"] for scenario in made.json()["scenarios"]} == {"attacks"}
    empty = api.post(SUITES, {"deployment": str(deployment.pk), "origin": "document"})
    assert empty.json()["error"]["code"] == "simulation_empty"


def test_lists_have_pages_and_filters(api: Api, deployment: Any) -> None:
    for name in ("A", "B", "C"):
        api.post(RUNS, {"suite": str(make_suite(deployment, name).pk)})
    page = api.get(f"{RUNS}?limit=2").json()
    assert len(page["simulations"]) == 2
    rest = api.get(f"{RUNS}?limit=2&before={page['next']}").json()
    assert len(rest["simulations"]) == 1
    assert rest["next"] == ""
    assert len(api.get(f"{SUITES}?deployment={deployment.pk}").json()["suites"]) == 3
    assert api.get(f"{RUNS}?status=finished").json()["simulations"] == []


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        ({"nmae": "x"}, 400, "invalid"),
        ({"name": 7.5, "lines": "Hello"}, 400, "invalid"),
        ({"name": "x"}, 422, "invalid_scenario"),
        ({"name": "x", **HELLO, "lines": [{"say": 7}]}, 422, "invalid_scenario"),
        ({"name": "x", **HELLO, "most_turns": 10**9}, 400, "invalid"),
    ],
)
def test_wrong_scenario_is_refused_with_a_code(api: Api, deployment: Any, data: Any, status: int, code: str) -> None:
    answer = api.post(f"{SUITES}/{make_suite(deployment).pk}/scenarios", data)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("data", [{}, {"name": "A", "origin": "attacks"}, {"origin": "written"}, {"name": "  "}])
def test_suite_needs_either_a_name_or_an_origin(api: Api, deployment: Any, data: Any) -> None:
    assert api.post(SUITES, {"deployment": str(deployment.pk), **data}).status_code == 400


def test_other_tenants_and_keys_without_the_scope_are_refused(
    api: Api, tenant: Any, other_tenant: Any, deployment: Any
) -> None:
    suite = make_suite(deployment)
    run = api.post(RUNS, {"suite": str(suite.pk)}).json()["id"]
    foreign = Api(other_tenant)
    assert foreign.get(f"{SUITES}/{suite.pk}").status_code == 404
    assert foreign.get(f"{SUITES}?deployment={deployment.pk}").status_code == 404
    assert foreign.post(SUITES, {"deployment": str(deployment.pk), "name": "x"}).status_code == 404
    assert foreign.post(f"{SUITES}/{suite.pk}/scenarios", {"name": "x", **HELLO}).status_code == 404
    assert foreign.post(RUNS, {"suite": str(suite.pk)}).status_code == 404
    for method, path in (("get", ""), ("post", "/stop"), ("post", "/resume")):
        assert foreign.send(method, f"{RUNS}/{run}{path}").status_code == 404
        assert api.send(method, f"{RUNS}/{uuid4()}{path}").status_code == 404
    reader = Api(tenant, KeyScope.DEPLOYMENTS_READ)
    assert reader.get(f"{RUNS}/{run}").status_code == 200
    refused = reader.post(f"{RUNS}/{run}/stop")
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "deployments:write"


def test_stranger_is_refused(deployment: Any, stranger: Any) -> None:
    assert browser().get(RUNS).status_code == 401
    assert browser(stranger).get(RUNS).status_code == 403
    assert browser(stranger).get(SUITES).status_code == 403
