"""Every operation of the schema, called in this process with values made from it, and with values that it refuses: no
server error, and no status that the schema does not declare.

The first id in an address is the one of a row that the company has, so that more than `not_found` is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client, override_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from apps.tenants.enums import KeyScope
from apps.tenants.rules import APP_SCOPES
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import make_house
from tests.factories.connections import make_connection
from tests.factories.memories import conversation, remember
from tests.factories.oauth import Flow, make_app
from tests.factories.proposals import make_finding, make_precedent, make_proposal, make_run, make_task
from tests.factories.sessions import make_session
from tests.factories.simulations import HELLO
from tests.factories.tenants import make_member, make_tenant
from tests.factories.work import make_desk

# An upload that a refusal left unread is closed by the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Hypothesis takes numbers that another thread draws meanwhile (the pool of connections does) for our own.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies"),
]

STREAMS = {"events_stream"}  # an answer without an end, see tests/events
SCHEMA = schemathesis.openapi.from_dict(
    yaml.safe_load((Path(__file__).parents[2] / "docs/openapi.yaml").read_text(encoding="utf-8"))
)
SCHEMA.app = WSGIHandler()
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
}
GATE = {"on": "every_user_message", "type": "regex", "config": {"pattern": "."}}


@pytest.fixture(scope="module")
def house(migrated: None, django_db_blocker: Any, tmp_path_factory: Any) -> Iterator[dict[str, Any]]:
    """A company's keys, and the id of a row by the beginning of its addresses."""
    with django_db_blocker.unblock(), override_settings(API_REQUESTS_A_MINUTE=1_000_000):
        tenant = make_tenant()
        make_house(tenant)
        desk = make_desk(tenant, tmp_path_factory.mktemp("skill"))
        item, session = desk.waiting(), make_session(desk.deployment).pk
        task = make_task(desk.deployment)
        run = make_run(task)
        memory = remember(tenant, conversation(session), "Parcels go out on Mondays.")
        with tenant_scope(tenant):
            owner = create_api_key("Owner").key
            third = create_api_key("Third").row
            limited = create_api_key("Limited", scopes=[KeyScope.SAFETY_AGENT]).key

        def create(path: str, **body: Any) -> str:
            headers = {"Authorization": f"Bearer {owner}"}
            answer = Client().post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)
            assert answer.status_code in (200, 201), answer.content
            return str(answer.json()["id"])

        deployment = str(desk.deployment.pk)
        suite = create("simulation-suites", deployment=deployment, name="Everyday")
        Client().post(
            f"/api/v1/simulation-suites/{suite}/scenarios",
            {"name": "hello", **HELLO},
            content_type="application/json",
            headers={"Authorization": f"Bearer {owner}"},
        )
        ids = {
            "api-keys": str(third.pk),
            "autonomous-sessions": str(run.pk),
            "budgets": create("budgets", period="day", limit_usd="5"),
            "canned-replies": create("canned-replies", name="Hello", text="Good morning"),
            "cards": str(desk.card(item).pk),
            "connections": str(make_connection(tenant).pk),
            "contacts": create("contacts", name="Ada"),
            "deployments": deployment,
            "findings": str(make_finding(run).pk),
            "gates": create("gates", name="words", content=GATE),
            "macros": create("macros", name="Close", steps=[{"do": "resolve"}]),
            "inbox-rules": create("inbox-rules", name="Close", trigger="message", steps=[{"do": "resolve"}]),
            "sla-policies": create("sla-policies", name="Standard", first_reply=30),
            "labels": create("labels", name="Refunds", colour="red"),
            "memories": str(memory.pk),
            "personas": deployment,
            "precedents": str(make_precedent(run).pk),
            "proposals": str(make_proposal(run).pk),
            "saved-views": create("saved-views", name="Open", page="inbox", parameters={"status": "open"}),
            "sessions": str(session),
            "skills": "test-desk",
            "simulation-suites": suite,
            "simulations": create("simulations", suite=suite),
            "skill-drafts": create("skill-drafts", name="weather", wish="Answers what the weather is"),
            "tasks": str(task.pk),
            "webhooks": create("webhooks", url="https://hooks.example.com/x", events=["card.created"]),
            "widget": desk.deployment.public_key,
            "work-items": str(item.pk),
        }
        app = Flow(make_app(tenant, *APP_SCOPES), make_member(tenant, "owner")).tokens()["access_token"]
        yield {"owner": owner, "limited": limited, "app": app, "ids": ids}


# Deletions last: what they delete is what the others are about.
NAMES = sorted(OPERATIONS.keys() - STREAMS, key=lambda name: (OPERATIONS[name].method.upper() == "DELETE", name))


@pytest.mark.parametrize("name", NAMES)
def test_operation_answers_as_declared(house: Any, name: str) -> None:
    """The first case of each is asked by all three: making a case takes longer than its answer."""
    operation = OPERATIONS[name]
    room, _, rest = operation.path.removeprefix("/api/v1/").partition("/{")
    fixed = {rest.partition("}")[0]: house["ids"][room]} if room in house["ids"] else None
    asking = ["owner", "app", "limited"]
    modes = (operation.as_strategy(mode, path_parameters=fixed) for mode in GenerationMode)

    @settings(
        max_examples=5,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(*modes))
    def call(case: Any) -> None:
        while asking:
            response = case.call(headers={"Authorization": f"Bearer {house[asking.pop()]}"})
            case.validate_response(response, checks=(not_a_server_error, status_code_conformance))
        asking.append("owner")

    call()
