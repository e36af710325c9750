"""Only what a person kept is recalled, as they edited it, until they dismiss it (contract autonomy A8)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import ProgrammingError

from apps.approvals.enums import CardStatus
from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.autonomy.enums import ProposalKind, ProposalState
from apps.autonomy.models import AutonomousSession, MemoryProposal
from apps.autonomy.services import proposals
from apps.knowledge.models import Collection
from apps.memory.models import MemoryItem
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards
from tests.factories.proposals import (
    card_about,
    documents,
    make_proposal,
    make_run,
    make_task,
    press,
    recalled_memories,
    reload,
    run_trusted_messages,
)
from tests.rivals import race

WORDS = "Parcels go out on Mondays."


@pytest.fixture
def run(deployment: Any) -> AutonomousSession:
    return make_run(make_task(deployment))


def make_asked_proposal(run: AutonomousSession, **fields: Any) -> MemoryProposal:
    proposal = make_proposal(run, **fields)
    with tenant_scope(run.tenant_id):
        proposals.open_proposal_card(proposal.pk)
    return proposal


def decide(verb: Any, proposal: MemoryProposal, user: Any, **fields: Any) -> Any:
    with tenant_scope(proposal.tenant_id):
        return verb(proposal.pk, user=user, **fields)


# --- what nobody kept


@pytest.mark.parametrize("fields", [{"state": ProposalState.KEPT}, {"kept_at": now()}, {"result_ref": "memory:x"}])
def test_database_takes_no_proposal_that_begins_as_kept(run: AutonomousSession, fields: dict[str, Any]) -> None:
    with pytest.raises(ProgrammingError, match="nothing is kept before a person keeps it"):
        make_proposal(run, **fields)


def test_proposal_nobody_kept_is_not_recalled(tenant: Any, run: AutonomousSession) -> None:
    make_asked_proposal(run)
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == []


def unanswered(run: AutonomousSession) -> MemoryProposal:
    content = "# Do you insure parrots?\n\n(Write the answer here.)\n"
    return make_asked_proposal(run, content=content, evidence={"known": False})


def test_question_nobody_answered_cannot_be_kept_as_it_stands(
    tenant: Any, run: AutonomousSession, approver: Any
) -> None:
    with pytest.raises(SilasError, match="has no answer yet") as refusal:
        press(tenant, unanswered(run).pk, approver, "keep")
    run_trusted_messages(tenant)
    assert refusal.value.code == "proposal_unanswered"
    assert recalled_memories(tenant) == []


def test_answer_of_a_person_is_kept_under_its_question(tenant: Any, run: AutonomousSession, approver: Any) -> None:
    press(tenant, unanswered(run).pk, approver, "keep", freetext="No, only dogs and cats.")
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == ["# Do you insure parrots?\n\nNo, only dogs and cats."]


def test_card_that_ran_out_keeps_nothing(tenant: Any, run: AutonomousSession) -> None:
    proposal = make_asked_proposal(run)
    with tenant_scope(tenant):
        Card.objects.filter(subject_id=proposal.pk).update(expires_at=now())
    expire_cards(tenant)
    run_trusted_messages(tenant)
    assert reload(proposal).state == ProposalState.PROPOSED
    assert recalled_memories(tenant) == []


@pytest.mark.parametrize("who", ["agent", "viewer"])
def test_member_who_may_not_decide_keeps_nothing(who: str, run: AutonomousSession, request: Any) -> None:
    proposal = make_proposal(run)
    with pytest.raises(SilasError) as refusal:
        decide(proposals.keep, proposal, request.getfixturevalue(who))
    assert refusal.value.code == "forbidden_role"
    assert reload(proposal).state == ProposalState.PROPOSED


def test_foreign_proposal_is_not_there(other_tenant: Any, run: AutonomousSession) -> None:
    from tests.factories.tenants import make_member

    proposal, elsewhere = make_proposal(run), make_member(other_tenant, "owner")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        proposals.keep(proposal.pk, user=elsewhere)


def test_proposal_kept_as_nothing_is_refused(run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run)
    with pytest.raises(SilasError, match="Write the text to keep"):
        decide(proposals.keep, proposal, owner, content="  ")


def test_collection_that_nobody_made_is_not_opened_by_a_session(run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run, kind=ProposalKind.KNOWLEDGE, target="public-secrets")
    with pytest.raises(SilasError) as refusal:
        decide(proposals.keep, proposal, owner)
    assert refusal.value.code == "collection_missing"


# --- kept


def test_kept_on_its_card_is_recalled(tenant: Any, run: AutonomousSession, approver: Any) -> None:
    press(tenant, make_asked_proposal(run).pk, approver, "keep")
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == [WORDS]


def test_kept_in_other_words_is_recalled_in_those(tenant: Any, run: AutonomousSession, approver: Any) -> None:
    press(tenant, make_asked_proposal(run).pk, approver, "keep", freetext="Parcels go out on Tuesdays.")
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == ["Parcels go out on Tuesdays."]


def test_memory_that_was_kept_is_staff_s_word_and_not_confirmed(
    tenant: Any, run: AutonomousSession, owner: Any
) -> None:
    decide(proposals.keep, make_proposal(run), owner)
    run_trusted_messages(tenant)
    with tenant_scope(tenant):
        assert MemoryItem.objects.values_list("taint", "trust").get() == ("auth", "working")


def test_preference_that_was_kept_is_confirmed(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    decide(proposals.keep, make_proposal(run, kind=ProposalKind.PREFERENCE), owner)
    run_trusted_messages(tenant)
    with tenant_scope(tenant):
        assert MemoryItem.objects.values_list("memory_type", "trust").get() == ("preference", "verified")


def test_kept_secret_is_scrubbed(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    decide(proposals.keep, make_proposal(run, "The card is 4111 1111 1111 1111."), owner)
    run_trusted_messages(tenant)
    assert "4111" not in recalled_memories(tenant)[0]


def test_kept_again_keeps_the_first_time(run: AutonomousSession, owner: Any) -> None:
    first = decide(proposals.keep, make_proposal(run), owner).kept_at
    with tenant_scope(run.tenant_id):
        proposal = MemoryProposal.objects.get()
    decide(proposals.dismiss, proposal, owner)
    assert decide(proposals.keep, proposal, owner).kept_at == first


def test_kept_again_in_other_words_leaves_one_memory(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run)
    decide(proposals.keep, proposal, owner)
    run_trusted_messages(tenant)
    decide(proposals.keep, proposal, owner, content="Parcels go out daily.")
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == ["Parcels go out daily."]


def test_dismissed_before_it_was_stored_is_not_recalled(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run)
    decide(proposals.keep, proposal, owner)
    decide(proposals.dismiss, proposal, owner)
    run_trusted_messages(tenant)
    assert recalled_memories(tenant) == []


@pytest.mark.parametrize("verb", [proposals.dismiss, proposals.delete])
def test_kept_and_then_unwanted_is_forgotten_at_once(
    tenant: Any, run: AutonomousSession, owner: Any, verb: Any
) -> None:
    proposal = make_proposal(run)
    decide(proposals.keep, proposal, owner)
    run_trusted_messages(tenant)
    decide(verb, proposal, owner)
    assert recalled_memories(tenant) == []


def test_deleted_proposal_takes_no_decision_any_more(run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run)
    decide(proposals.delete, proposal, owner)
    with pytest.raises(NotFound):
        decide(proposals.keep, proposal, owner)


def test_decision_elsewhere_takes_the_card_back(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    proposal = make_asked_proposal(run)
    decide(proposals.dismiss, proposal, owner)
    assert card_about(tenant, proposal.pk).status == CardStatus.WITHDRAWN


def test_kept_and_dismissed_at_once_is_recalled_only_if_kept(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    proposal = make_asked_proposal(run)
    race(lambda: press(tenant, proposal.pk, owner, "keep"), lambda: decide(proposals.dismiss, proposal, owner))
    run_trusted_messages(tenant)
    assert bool(recalled_memories(tenant)) == (reload(proposal).state == ProposalState.KEPT)


# --- documents


def test_kept_knowledge_becomes_a_document(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    decide(proposals.keep, make_proposal(run, kind=ProposalKind.KNOWLEDGE), owner)
    run_trusted_messages(tenant)
    assert documents(tenant) == [WORDS]


def test_document_that_was_kept_is_stored_by_its_session(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    with tenant_scope(tenant):
        Collection.objects.create(name="handbook")
    decide(proposals.keep, make_proposal(run, kind=ProposalKind.KNOWLEDGE, target="handbook"), owner)
    run_trusted_messages(tenant)
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event="document_stored").actor == f"autonomy:{run.pk}"


def test_document_that_is_dismissed_is_gone(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    proposal = make_proposal(run, kind=ProposalKind.KNOWLEDGE)
    decide(proposals.keep, proposal, owner)
    run_trusted_messages(tenant)
    decide(proposals.dismiss, proposal, owner)
    assert documents(tenant) == []


def test_document_dismissed_while_it_was_stored_is_gone(tenant: Any, run: AutonomousSession, owner: Any) -> None:
    """The worker had read it before; the dismissal came before the document was stored."""
    from apps.autonomy.services import proposal_storage

    proposal = make_proposal(run, kind=ProposalKind.KNOWLEDGE)
    kept = decide(proposals.keep, proposal, owner)
    decide(proposals.dismiss, proposal, owner)
    proposal_storage._store_document(tenant.pk, kept)
    with tenant_scope(tenant):
        proposal_storage._link_document(proposal.pk)
    assert documents(tenant) == []
