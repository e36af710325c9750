"""Nothing that is simulated reaches the company: its records, cards, work, memory, money, queue, figures or letters."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail

from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.autonomy.models import Notification, Outbox
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.gates.schemas import Expectation
from apps.guard.models import Budget, GuardedRun, SpendEntry
from apps.inbox.queries import unassigned_count
from apps.memory.models import MemoryItem
from apps.sessions.models import ChatSession
from apps.simulations.models import SimulationCopy
from apps.simulations.queries import suites_of
from apps.skills.models import Record
from apps.skills.queries import load_runnable
from apps.tenants.models import Deployment, Membership
from apps.tenants.queries import deployment_by_key, memberships_of
from apps.work.checks import within_reach
from apps.work.models import WorkItem
from apps.work.schemas import VerificationCheck
from kernel.tenancy import in_scope, in_thread, tenant_scope
from silas_platform import demo
from tests.factories.bus import carry_out_due
from tests.factories.simulations import make_suite, results_of, simulated
from tests.factories.skills import install, make_folder

WHO = "Maria Ortega, 12 March 1984"
# A conversation that verifies a customer, asks for work on a record, and asks for a person.
EVENTFUL = [
    {"say": WHO, "level": "verified"},
    {"say": "Please refund order H-90340"},
    {"say": "I want to speak to a person", "person": True},
]


@pytest.fixture(scope="module")
def harbor(migrated: None, django_db_blocker: Any) -> Any:
    name = f"-{uuid4().hex[:6]}"
    with django_db_blocker.unblock():
        demo.seed(progress=lambda _: None, copy=name)
        return deployment_by_key(f"demo-harbor{name}")


def _rows(deployment: Deployment) -> dict[str, Any]:
    """What of the company a conversation could touch."""
    with tenant_scope(deployment.tenant_id):
        counted = {model.__name__: model.objects.count() for model in _COUNTED}  # type: ignore[attr-defined]
        return counted | {
            "records": sorted(Record.objects.values_list("book", "key", "revision")),
            "budgets": sorted(Budget.objects.values_list("period", "spent", "reserved")),
            "waiting": unassigned_count(),
            "deliveries": QueueMessage.objects.exclude(queue=Queue.SIMULATION).count(),
            "letters": len(mail.outbox),
        }


_COUNTED = (Card, WorkItem, MemoryItem, ChatSession, SpendEntry, GuardedRun, Notification, Outbox)


async def test_eventful_conversation_leaves_the_company_as_it_was(database: None, harbor: Deployment) -> None:
    suite = await in_thread(lambda: make_suite(harbor, "eventful", eventful={"lines": EVENTFUL}))
    before = await in_thread(_rows, harbor)
    run = await simulated(harbor, suite)
    found = (await results_of(run))["eventful"]
    assert found.failures == []
    assert found.conversation[0]["level"] == "verified"
    assert await in_thread(_rows, harbor) == before


async def test_copy_has_nobody_and_nothing_that_reaches_outside(database: None, harbor: Deployment) -> None:
    suite = await in_thread(lambda: make_suite(harbor, "hello"))
    await simulated(harbor, suite)
    with_rows = await in_thread(_in_copy, harbor)
    assert with_rows == {"members": ["reviewer"], "outbox": 0, "notices": 0, "tests": True, "origins": []}


def _in_copy(deployment: Deployment) -> dict[str, Any]:
    with tenant_scope(deployment.tenant_id):
        copy = SimulationCopy.objects.get(deployment=deployment)
        assert AuditEntry.objects.filter(event="simulation_ended").exists()
    with tenant_scope(copy.copy_tenant_id):
        return {
            "members": [one.user.email.partition("@")[0] for one in Membership.objects.select_related("user")],
            "outbox": Outbox.objects.count(),
            "notices": Notification.objects.count(),
            "tests": not ChatSession.objects.filter(is_test=False).exists(),
            "origins": Deployment.objects.get().allowed_origins,
        }


REFUND = [
    {"say": "I am Tom Baker, born 3 May 1975", "level": "verified"},
    {"say": "Please refund £118 for order H-90256, it came damaged", "work": "card"},
]


async def test_approved_work_is_waited_for_and_changes_the_copys_record_alone(
    database: None, harbor: Deployment, settings: Any
) -> None:
    settings.SIMULATION_WORK_SECONDS = 30
    refunded = {"kind": "record", "book": "orders", "key": "H-90256", "field": "refunded"}
    approved = {"lines": REFUND, "reviewer": "approve", "checks": [{**refunded, "equals": 118}]}
    declined = {"lines": REFUND, "reviewer": "decline", "checks": [{**refunded, "equals": 0}]}
    suite = await in_thread(lambda: make_suite(harbor, "refunds", declined=declined, then_approved=approved))
    before = await in_thread(_rows, harbor)
    worker = asyncio.create_task(_carry_out_the_copys_work(harbor))
    run = await simulated(harbor, suite)
    worker.cancel()
    found = await results_of(run)
    assert found["declined"].failures == []
    assert found["then_approved"].failures == []
    assert await in_thread(_rows, harbor) == before
    # The reviewer is a member of nothing else, so no key of theirs can sign outside the copy.
    assert await in_thread(_memberships_of_the_reviewer, harbor) == 1


async def test_approved_work_that_nobody_carries_out_fails_its_scenario(
    database: None, harbor: Deployment, settings: Any
) -> None:
    settings.SIMULATION_WORK_SECONDS = 0.1
    suite = await in_thread(lambda: make_suite(harbor, "waits", waits={"lines": REFUND, "reviewer": "approve"}))
    found = (await results_of(await simulated(harbor, suite)))["waits"]
    assert found.failures == ["turn 2: work wasn't done in 0.1 seconds"]


async def _carry_out_the_copys_work(deployment: Deployment) -> None:
    """What a worker of the installation does."""
    while True:
        copy = await in_scope(
            deployment.tenant_id, lambda: SimulationCopy.objects.filter(deployment=deployment).first()
        )
        if copy is not None:
            await carry_out_due(copy.copy_tenant_id, Kind.EXECUTION_REQUEST, Kind.EXECUTION_STATUS)
        await asyncio.sleep(0.1)


def _memberships_of_the_reviewer(deployment: Deployment) -> int:
    with tenant_scope(deployment.tenant_id):
        copy = SimulationCopy.objects.get(deployment=deployment)
    with tenant_scope(copy.copy_tenant_id):
        reviewer = Membership.objects.select_related("user").get().user
        assert not reviewer.has_usable_password()
    return len(memberships_of(reviewer))


async def test_script_and_check_reach_no_host_from_a_copy(database: None, harbor: Deployment, tmp_path: Path) -> None:
    folder = make_folder(tmp_path, requirements={"network": ["status.example.com"]})
    await in_thread(install, harbor.tenant, folder)
    run = await simulated(harbor, await in_thread(lambda: make_suite(harbor, "offline")))
    assert "network of test-desk" in run.lacks
    company, copy = await in_thread(_reach, harbor)
    assert company == (("status.example.com:443",), True)
    assert copy == ((), False)


def _reach(deployment: Deployment) -> list[Any]:
    """(places of a script, whether a check gets the network) in the company and in its copy."""
    check = VerificationCheck(name="site", run="true", expect=Expectation(exit_code=0), network=True)
    with tenant_scope(deployment.tenant_id):
        tenants = [deployment.tenant_id, SimulationCopy.objects.get(deployment=deployment).copy_tenant_id]
    reach = []
    for tenant in tenants:
        with tenant_scope(tenant):
            runnable = load_runnable("look", ["test-desk"], "")
            assert runnable is not None
            reach.append((runnable.egress, within_reach([check])[0].network))
    return reach


@pytest.mark.slow
async def test_suites_of_the_demo_pass_offline(database: None, harbor: Deployment) -> None:
    """Every scenario of the demo's shop, in its copy, with the built-in model."""
    for suite in await in_thread(_suites, harbor):
        run = await simulated(harbor, suite)
        found = await results_of(run)
        assert {name: row.failures for name, row in found.items() if row.failures} == {}
        assert run.passed is True


def _suites(deployment: Deployment) -> list[Any]:
    with tenant_scope(deployment.tenant_id):
        return [suite for suite in suites_of(deployment) if suite.name.startswith("harbor")]


async def test_run_of_the_same_suite_finds_the_customer_as_before(database: None, harbor: Deployment) -> None:
    lines = [{"say": WHO}, {"say": "Please refund order H-90340"}]
    suite = await in_thread(lambda: make_suite(harbor, "twice", twice={"lines": lines}))
    first = (await results_of(await simulated(harbor, suite)))["twice"]
    second = (await results_of(await simulated(harbor, suite)))["twice"]
    assert [said["bot"] for said in first.conversation] == [said["bot"] for said in second.conversation]
    assert [said["work"] for said in first.conversation] == [said["work"] for said in second.conversation]
