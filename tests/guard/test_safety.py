"""What acts passes the safety loop: stopped for danger, blocked until a person lifts it, whatever was approved."""

from __future__ import annotations

from typing import Any

import pytest

from apps.guard.enums import RefusalCode
from apps.guard.schemas import Done, NeedsApproval
from apps.safety.models import Hold
from apps.safety.services.confirmations import allow
from apps.safety.services.internal_agents import hint_for_call
from kernel.tenancy import tenant_scope
from tests.factories.guard import answer, audited, change_run, make_call, make_run
from tests.factories.safety import policy
from tests.guard.conftest import Handle, call, never, refused

BLOCKED = refused(RefusalCode.SAFETY_BLOCKED)


def approved(run: Any, asked: Any) -> None:
    """As by the one who opened the run, and verified the approval."""
    run.approval = {"nonce": "n" * 20, "calls": [asked.digest]}
    change_run(run, approval=run.approval)


def test_call_that_reads_is_never_asked_about(tenant: Any, deployment: Any, handle: Handle) -> None:
    policy(tenant, deny=["*"])
    handle(answer())
    assert isinstance(call(make_run(tenant, deployment_id=deployment.pk), make_call()), Done)


def test_acting_call_of_little_danger_waits_for_its_approval_alone(tenant: Any, handle: Handle) -> None:
    handle(never)
    assert isinstance(call(make_run(tenant), make_call(acting=True)), NeedsApproval)


@pytest.mark.parametrize(
    "said",
    [
        {"tolerance": "conservative"},
        {"requires_approval": ["*"]},
        {"max_steps": 1},
        *({"scores": [{"pattern": "*", "score": score}]} for score in (10, 50, 80)),
    ],
)
def test_approved_call_is_asked_about_no_more(tenant: Any, handle: Handle, said: dict[str, Any]) -> None:
    policy(tenant, **said)
    handle(answer())
    run, asked = make_run(tenant), make_call(acting=True)
    assert isinstance(call(run, asked), NeedsApproval)
    approved(run, asked)
    assert isinstance(call(run, asked), Done)
    with tenant_scope(tenant):
        assert not Hold.objects.exists()


def test_denied_acting_call_is_refused_although_it_was_approved_and_written_down(tenant: Any, handle: Handle) -> None:
    policy(tenant, deny=["run_skill *"])
    handle(never)
    run, asked = make_run(tenant), make_call(acting=True)
    approved(run, asked)
    assert call(run, asked) == BLOCKED
    assert "safety_blocked" in str(audited(run))


def test_block_holds_for_every_acting_call_of_the_chatbot_alone_until_a_person_lifts_it(
    tenant: Any, deployment: Any, handle: Handle
) -> None:
    policy(tenant, deny=["run_skill *amount=500*"])
    handle(answer())
    call(make_run(tenant, deployment_id=deployment.pk), make_call(acting=True, args={"amount": 500}))
    run, other = make_run(tenant, deployment_id=deployment.pk), make_run(tenant)
    asked = make_call(acting=True, args={"amount": 5})
    for each in (run, other):
        approved(each, asked)
    run.approval["nonce"] = "m" * 20
    assert call(run, asked) == BLOCKED
    assert isinstance(call(other, asked), Done)
    with tenant_scope(tenant):
        allow(Hold.objects.get().pk, actor="user:test")
    assert isinstance(call(run, asked), Done)


def test_monitoring_refuses_nothing(tenant: Any, handle: Handle) -> None:
    policy(tenant, deny=["*"], mode="monitoring")
    handle(answer())
    run, asked = make_run(tenant), make_call(acting=True)
    approved(run, asked)
    assert isinstance(call(run, asked), Done)


@pytest.mark.parametrize("said", ["drop table users", "rm -rf /", "delete_all", "x" * 9000])
def test_what_a_visitor_wrote_is_no_part_of_the_hint(said: str) -> None:
    assert hint_for_call("run_skill", "note", {"text": said}) == f"run_skill note text=text({len(said)})"


def test_hint_is_canonical() -> None:
    args = {"sum": 12.5, "order": "R-4711", "whole": True, "items": [1, 2]}
    assert (
        hint_for_call("run_skill", "refund", args) == "run_skill refund items=list(2) order=R-4711 sum=12.5 whole=true"
    )
