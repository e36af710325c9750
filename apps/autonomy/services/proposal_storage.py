"""Store kept proposals in memory or knowledge, and remove them again.

Stored by a trusted worker, because the others have no right to memory; removed in the transaction that decides it. What
is recalled is exactly what is kept and neither deleted nor quarantined (`may_be_recalled`). The proposal's row is the
source from which the stored copy is made, so that it can be removed and restored. A kept document is stored by
`autonomy:<session>`, so that no watch fires on it (contract autonomy A8, echo prevention).
"""

from __future__ import annotations

from uuid import UUID, uuid4

from apps.autonomy.enums import ProposalKind, ProposalState
from apps.autonomy.locks import lock_proposal
from apps.autonomy.models import MemoryProposal
from apps.autonomy.services import bus_messages
from apps.bus.deliveries import Delivery
from apps.guard.queries import has_content_marks
from apps.knowledge import services as knowledge
from apps.knowledge.models import Collection, Document
from apps.knowledge.parsing import Parsed, ParsedDocument
from apps.memory import memories
from apps.memory.enums import ScopeKind, SourceKind, Tier, Trust
from apps.memory.schemas import Note, Scope
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id, in_scope, in_thread, tenant_scope
from llm.enums import MemoryType

# The collection of documents whose proposal names none.
DEFAULT_COLLECTION = "kept-proposals"


def may_be_recalled(proposal: MemoryProposal) -> bool:
    """Whether the proposal is kept and neither deleted nor quarantined."""
    kept = proposal.state == ProposalState.KEPT
    return kept and proposal.deleted_at is None and proposal.quarantined_at is None


def enqueue_storage(proposal: MemoryProposal) -> None:
    """Have a trusted worker store it where it is recalled."""
    bus_messages.enqueue_review(
        bus_messages.RECALL, proposal.pk, message_id=f"{bus_messages.RECALL}:{proposal.pk}:{uuid4()}"
    )


def remove_from_memory(proposal: MemoryProposal) -> None:
    """Remove what it was stored as, with this transaction. Under the proposal's lock; idempotent."""
    memories.delete_by_reference(Scope(ScopeKind.TENANT, str(current_tenant_id())), memory_reference(proposal))
    document = Document.objects.filter(
        source_ref=document_reference(proposal), collection__name=_collection_name(proposal)
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
    """Require that the named collection exists: a session cannot create one.

    Raises `SilasError("collection_missing")` 409.
    """
    if proposal.kind != ProposalKind.KNOWLEDGE or not proposal.target:
        return
    if not Collection.objects.filter(name=proposal.target).exists():
        raise SilasError(ErrorCode.COLLECTION_MISSING)


async def store_kept(delivery: Delivery, proposal_id: UUID) -> None:
    """Store one kept proposal in memory or knowledge.

    Embedding and chunking happen outside of every transaction; whether it is still kept is checked again where it is
    written.
    """
    proposal, marked = await in_scope(delivery.tenant_id, _kept_proposal, proposal_id)
    if proposal is None:
        return
    if proposal.kind == ProposalKind.KNOWLEDGE:
        await in_thread(_store_document, delivery.tenant_id, proposal)
        await delivery.commit(_link_document, proposal_id)
    else:
        (note,) = await in_thread(memories.prepare, [_note(proposal, delivery.tenant_id, marked=marked)])
        await delivery.commit(_store_memory, proposal_id, note, proposal.content)


def _kept_proposal(proposal_id: UUID) -> tuple[MemoryProposal | None, bool]:
    """The proposal if it may be recalled, and whether its session had read instructions to the assistant."""
    row: MemoryProposal | None = MemoryProposal.objects.filter(pk=proposal_id).first()
    if row is None or not may_be_recalled(row):
        return None, False
    return row, has_content_marks(row.session_id)


def _store_document(tenant_id: UUID, proposal: MemoryProposal) -> None:
    with tenant_scope(tenant_id):
        collection = knowledge.open_collection(_collection_name(proposal), actor=storing_actor(proposal))
    text = memories.scrub(proposal.content)
    parsed = Parsed((ParsedDocument(proposal.title, text),))
    knowledge.store_parsed(
        tenant_id, collection.pk, parsed, reference=document_reference(proposal), actor=storing_actor(proposal)
    )


def _link_document(proposal_id: UUID) -> None:
    """Link the stored document, or remove it if the decision was changed meanwhile."""
    try:
        proposal = lock_proposal(proposal_id)
    except NotFound:
        unlocked = MemoryProposal.objects.filter(pk=proposal_id).first()
        if unlocked is None:
            return
        proposal = unlocked
    document = Document.objects.filter(
        source_ref=document_reference(proposal), collection__name=_collection_name(proposal)
    ).first()
    if document is None:
        return
    if not may_be_recalled(proposal):
        remove_from_memory(proposal)
        return
    knowledge.refresh_collection(document.collection_id)
    MemoryProposal.objects.filter(pk=proposal_id).update(result_ref=f"document:{document.pk}")


def _store_memory(proposal_id: UUID, note: Note, content: str) -> None:
    """Only if the text is still the one that was prepared: an edit enqueues it again."""
    try:
        proposal = lock_proposal(proposal_id)
    except NotFound:
        return
    if may_be_recalled(proposal) and proposal.content == content:
        memories.keep([note])
        MemoryProposal.objects.filter(pk=proposal_id).update(result_ref=f"memory:{memory_reference(proposal)}")


def _note(proposal: MemoryProposal, tenant_id: UUID, *, marked: bool) -> Note:
    """The memory of a kept proposal.

    A member has read and kept the text, so its taint is `auth`: the company's memory takes nothing external. Only a
    preference is confirmed by being kept (spec 6.6). A mark stays: keeping a text does not make its sources true.
    """
    is_preference = proposal.kind == ProposalKind.PREFERENCE
    return Note(
        Scope(ScopeKind.TENANT, str(tenant_id)),
        proposal.content,
        SourceKind.KEPT_PROPOSAL,
        memory_reference(proposal),
        taint=Taint.AUTH,
        tier=Tier.ACTIVE,
        trust=Trust.VERIFIED if is_preference else Trust.WORKING,
        memory_type=MemoryType.PREFERENCE if is_preference else MemoryType(proposal.memory_type),
        marked=marked,
    )


def _collection_name(proposal: MemoryProposal) -> str:
    return proposal.target or DEFAULT_COLLECTION
