"""How does what a person kept come into memory or knowledge, and out again? In by a web process, because workers have
no right to memory; out at once, in the transaction that decides it.

Always holds: what is recalled is exactly what is kept, not deleted and not set aside (`is_wanted`); the proposal's row
is the truth and what it became is made from it, so that it can be taken out and put back. A kept document is stored by
`autonomy:<session>`, and no watch fires on it (contract autonomy A8, echo prevention).
"""

from __future__ import annotations

from uuid import UUID, uuid4

from apps.autonomy.enums import ProposalKind, ProposalState
from apps.autonomy.locks import lock_proposal
from apps.autonomy.models import MemoryProposal
from apps.autonomy.services import bus_messages
from apps.bus.deliveries import Delivery
from apps.guard.queries import read_instructions
from apps.memory import memories
from apps.memory import services as knowledge
from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.models import Collection, Document
from apps.memory.parsing import Parsed, ParsedDocument
from apps.memory.schemas import Note, Scope
from kernel.errors import NotFound, SilasError
from kernel.llm.enums import MemoryType
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id, in_scope, in_thread, tenant_scope

# Where a document goes whose proposal names no collection.
DEFAULT_COLLECTION = "kept-proposals"


def may_be_recalled(proposal: MemoryProposal) -> bool:
    """Whether it may be recalled at all."""
    kept = proposal.state == ProposalState.KEPT
    return kept and proposal.deleted_at is None and proposal.quarantined_at is None


def enqueue_storage(proposal: MemoryProposal) -> None:
    """A web process shall put it where it is recalled."""
    bus_messages.enqueue_review(
        bus_messages.RECALL, proposal.pk, message_id=f"{bus_messages.RECALL}:{proposal.pk}:{uuid4()}"
    )


def remove_from_memory(proposal: MemoryProposal) -> None:
    """Nobody recalls it after this transaction. Under the proposal's lock; safe to repeat."""
    memories.delete_by_reference(_scope(), memory_reference(proposal))
    document = Document.objects.filter(
        source_ref=document_reference(proposal), collection__name=_home_of(proposal)
    ).first()
    if document is not None:
        knowledge.forget_document(document.pk, actor=storing_actor(proposal))
    MemoryProposal.objects.filter(pk=proposal.pk).update(result_ref="")
    proposal.result_ref = ""


def memory_reference(proposal: MemoryProposal) -> str:
    return f"proposal:{proposal.pk}"


def document_reference(proposal: MemoryProposal) -> str:
    return f"autonomy/{proposal.pk}"


def storing_actor(proposal: MemoryProposal) -> str:
    return f"autonomy:{proposal.session_id}"


def require_collection(proposal: MemoryProposal) -> None:
    """A document goes to a collection that a person has made, or to the one for what was kept; a session opens none.

    Raises `SilasError("collection_missing")` 409.
    """
    if proposal.kind != ProposalKind.KNOWLEDGE or not proposal.target:
        return
    if not Collection.objects.filter(name=proposal.target).exists():
        raise SilasError("collection_missing", "The documents that this would be added to are not there.", status=409)


async def store_kept(delivery: Delivery, proposal_id: UUID) -> None:
    """Put one kept proposal where it is recalled. Embedding and cutting happen outside of every transaction; whether it
    is still wanted is asked again where it is written."""
    proposal, marked = await in_scope(delivery.tenant_id, _wanted, proposal_id)
    if proposal is None:
        return
    if proposal.kind == ProposalKind.KNOWLEDGE:
        await in_thread(_store, delivery.tenant_id, proposal)
        await delivery.commit(_stored, proposal_id)
    else:
        (note,) = await in_thread(memories.prepare, [_note(proposal, delivery.tenant_id, marked=marked)])
        await delivery.commit(_remember, proposal_id, note, proposal.content)


def _wanted(proposal_id: UUID) -> tuple[MemoryProposal | None, bool]:
    """With it, whether the session that proposed it had read instructions to the assistant."""
    found: MemoryProposal | None = MemoryProposal.objects.filter(pk=proposal_id).first()
    if found is None or not may_be_recalled(found):
        return None, False
    return found, read_instructions(found.session_id)


def _store(tenant_id: UUID, proposal: MemoryProposal) -> None:
    with tenant_scope(tenant_id):
        home = knowledge.open_collection(_home_of(proposal), actor=storing_actor(proposal))
    text = memories.scrub(proposal.content)
    parsed = Parsed((ParsedDocument(proposal.title, text),))
    knowledge.store_parsed(
        tenant_id, home.pk, parsed, reference=document_reference(proposal), actor=storing_actor(proposal)
    )


def _stored(proposal_id: UUID) -> None:
    """Whoever changed their mind meanwhile is right: the document goes again."""
    try:
        proposal = lock_proposal(proposal_id)
    except NotFound:
        proposal = MemoryProposal.objects.filter(pk=proposal_id).first()
        if proposal is None:
            return
    document = Document.objects.filter(
        source_ref=document_reference(proposal), collection__name=_home_of(proposal)
    ).first()
    if document is None:
        return
    if not may_be_recalled(proposal):
        remove_from_memory(proposal)
        return
    knowledge.refresh_collection(document.collection_id)
    MemoryProposal.objects.filter(pk=proposal_id).update(result_ref=f"document:{document.pk}")


def _remember(proposal_id: UUID, note: Note, content: str) -> None:
    """Only as it was prepared: what was worded anew meanwhile is owed anew."""
    try:
        proposal = lock_proposal(proposal_id)
    except NotFound:
        return
    if may_be_recalled(proposal) and proposal.content == content:
        memories.keep([note])
        MemoryProposal.objects.filter(pk=proposal_id).update(result_ref=f"memory:{memory_reference(proposal)}")


def _note(proposal: MemoryProposal, tenant_id: UUID, *, marked: bool) -> Note:
    """A member read these words and put their name to them: staff are `auth` (architecture), and the company's memory
    takes nothing from outside. Only a way to behave is confirmed by being kept (spec 6.6). A mark stays: what the words
    rest on did not become true by being kept."""
    prefers = proposal.kind == ProposalKind.PREFERENCE
    return Note(
        Scope(ScopeKind.TENANT, str(tenant_id)),
        proposal.content,
        SourceKind.KEPT_PROPOSAL,
        memory_reference(proposal),
        taint=Taint.AUTH,
        tier=Tier.ACTIVE,
        trust=Trust.VERIFIED if prefers else Trust.WORKING,
        memory_type=MemoryType.PREFERENCE if prefers else MemoryType(proposal.memory_type),
        marked=marked,
    )


def _home_of(proposal: MemoryProposal) -> str:
    return proposal.target or DEFAULT_COLLECTION


def _scope() -> Scope:
    return Scope(ScopeKind.TENANT, str(current_tenant_id()))
