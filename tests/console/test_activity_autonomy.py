"""The activity feed of automations and what they proposed."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services import proposals, provenance
from apps.autonomy.services.provenance import Origin
from apps.console.names import Names, address_of, data_of
from apps.console.pages.activity.feed import Sentence, describe_event
from kernel.tenancy import tenant_scope
from tests.factories.proposals import make_proposal, make_run, make_task


@pytest.fixture
def run(deployment: Any) -> AutonomousSession:
    return make_run(make_task(deployment))


def newest(tenant: Any, event: str) -> Sentence:
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(event=event).latest("seq")
    return describe_event(entry.event, actor=entry.actor, subject=entry.subject, data=data_of(entry), names=Names({}))


@pytest.mark.parametrize(
    ("verb", "said"),
    [("keep", "A former member accepted a proposal"), ("dismiss", "A former member dismissed a proposal")],
)
def test_decision_about_a_proposal_is_told_as_it_was(
    tenant: Any, run: AutonomousSession, owner: Any, verb: str, said: str
) -> None:
    row = make_proposal(run)
    with tenant_scope(tenant):
        getattr(proposals, verb)(row.pk, user=owner)
    assert newest(tenant, "proposal_decided").lead == said


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("quarantine", "An administrator quarantined everything derived from"),
        ("release", "An administrator restored everything derived from"),
        ("purge", "An administrator deleted everything derived from"),
    ],
)
def test_purge_is_not_told_as_something_milder(tenant: Any, run: AutonomousSession, verb: str, said: str) -> None:
    make_proposal(run)
    with tenant_scope(tenant):
        getattr(provenance, verb)(Origin("session", str(run.pk)), actor="command:provenance")
    assert newest(tenant, "provenance_purged").lead == said


def test_entry_about_a_session_leads_to_it(run: AutonomousSession) -> None:
    assert address_of(f"autonomous:{run.pk}", owner=False) == reverse("console-run", args=[run.pk])


@pytest.mark.parametrize("state", ["sent", "given_up"])
def test_letter_is_told_without_gaps(state: str) -> None:
    data = {"channel": "webhook", "state": state, "attempts": 8}
    sentence = describe_event("outbox_sent", actor="system", subject="outbox:1", data=data, names=Names({}))
    assert "…" not in sentence.rest
    assert "something" not in sentence.rest
