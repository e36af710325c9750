"""What was written by one task, one session, or with one skill? All of it can be listed, set aside and deleted.

Always holds: what is set aside is recalled by nobody from this transaction on, and comes back when it is released; what
is purged is gone, with what it became in memory and knowledge; that a session ran, and what it cost, stays. Each is
audited with counts. Owners only, in a web process or on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

from django.db.models import BooleanField, F, Func, JSONField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from apps.approvals.enums import Withdrawal
from apps.approvals.services import withdraw_about
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.locks import lock_proposals
from apps.autonomy.models import AutonomousSession, ContextProposal, Finding, MemoryProposal, Precedent
from apps.autonomy.services import proposal_storage
from apps.autonomy.services.precedents import CONTEXT
from apps.autonomy.services.proposals import PROPOSAL
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import TenantModel

Row = TypeVar("Row", bound=TenantModel)


Kind = Literal["task", "session", "skill"]
KINDS: tuple[Kind, ...] = ("task", "session", "skill")


class _NamesSkill(Func):
    """Whether one of a row's skills, each `name@digest`, is this one."""

    function, output_field = "jsonb_path_exists", BooleanField()

    def __init__(self, ref: str) -> None:
        known = {"ref": ref, "name": f"{ref}@"}
        super().__init__(F("skills"), Value("$[*] ? (@ == $ref || @ starts with $name)"), Value(known, JSONField()))


@dataclass(frozen=True)
class Origin:
    """Where things come from: a task or session by id, a skill by its name, whichever version it was, or one version by
    its reference. A session's later attempts are its own."""

    kind: Kind
    ref: str

    @property
    def wanted(self) -> Q:
        match self.kind:
            case "task":
                return Q(task_id=_uuid(self.ref))
            case "session":
                return Q(session_id=_uuid(self.ref)) | Q(root_id=_uuid(self.ref))
            case "skill":
                return Q(_NamesSkill(self.ref))


@dataclass(frozen=True)
class OriginRows:
    """All that there is of one origin. `remembered`: which of the proposals stand in memory or among the documents."""

    findings: tuple[Finding, ...]
    proposals: tuple[MemoryProposal, ...]
    precedents: tuple[Precedent, ...]
    contexts: tuple[ContextProposal, ...]

    @property
    def remembered(self) -> tuple[str, ...]:
        return tuple(each.result_ref for each in self.proposals if each.result_ref)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "findings": len(self.findings),
            "proposals": len(self.proposals),
            "precedents": len(self.precedents),
            "contexts": len(self.contexts),
            "remembered": len(self.remembered),
        }


def rows_of(origin: Origin) -> OriginRows:
    """Everything of this origin, what was deleted by hand included. Inside a scope."""
    precedents = _of(Precedent, origin)
    contexts = ContextProposal.objects.filter(precedent__in=precedents)
    return OriginRows(
        tuple(_of(Finding, origin)), tuple(_of(MemoryProposal, origin)), tuple(precedents), tuple(contexts)
    )


def set_aside(origin: Origin, *, actor: str) -> OriginRows:
    """Nobody recalls or decides any of it from now on; again is fine, the first time stays."""
    _withdraw_cards(rows_of(origin), actor)
    for proposal in lock_proposals(_of(MemoryProposal, origin)):
        proposal_storage.remove_from_memory(proposal)
    for model in (Finding, MemoryProposal, Precedent):
        _of(model, origin).update(quarantined_at=Coalesce(F("quarantined_at"), now()))
    return _told(origin, "set_aside", actor)


def release(origin: Origin, *, actor: str) -> OriginRows:
    """As if it had never been set aside: what was kept is recalled again, soon."""
    for model in (Finding, MemoryProposal, Precedent):
        _of(model, origin).update(quarantined_at=None)
    for proposal in lock_proposals(_of(MemoryProposal, origin)):
        if proposal_storage.may_be_recalled(proposal) and not proposal.result_ref:
            proposal_storage.enqueue_storage(proposal)
    return _told(origin, "release", actor)


def purge(origin: Origin, *, actor: str) -> dict[str, int]:
    """Delete all of it, and its words in the receipts. Returns how many there were. Cannot be undone."""
    written = rows_of(origin)
    _withdraw_cards(written, actor)
    for proposal in lock_proposals(_of(MemoryProposal, origin)):
        proposal_storage.remove_from_memory(proposal)
    sessions = {row.session_id for row in (*written.findings, *written.proposals, *written.precedents)}
    sessions |= _sessions_of(origin)
    ContextProposal.objects.filter(precedent__in=[each.pk for each in written.precedents]).delete()
    for model in (Finding, MemoryProposal, Precedent):
        _of(model, origin).delete()
    _without_words(sessions)
    _record(origin, "purge", actor, written)
    return written.counts


def _of(model: type[Row], origin: Origin) -> QuerySet[Row]:
    rows: QuerySet[Row] = model._default_manager.filter(origin.wanted)
    return rows


def _withdraw_cards(written: OriginRows, actor: str) -> None:
    for kind, rows in ((PROPOSAL, written.proposals), (CONTEXT, written.contexts)):
        for row in rows:
            withdraw_about(kind, row.pk, reason=Withdrawal.STAFF, actor=actor)


def _sessions_of(origin: Origin) -> set[UUID]:
    """Those of the origin itself, also where they wrote nothing but their result; of a skill nobody could tell."""
    match origin.kind:
        case "task":
            mine = Q(task_id=_uuid(origin.ref))
        case "session":
            mine = Q(pk=_uuid(origin.ref)) | Q(root_id=_uuid(origin.ref))
        case "skill":
            return set()
    return set(AutonomousSession.objects.filter(mine).values_list("pk", flat=True))


def _without_words(session_ids: Iterable[UUID]) -> None:
    """What a session said stands in its row and its receipt too, and in what those were told that it began; its figures
    stay."""
    AutonomousSession.objects.filter(parent_id__in=set(session_ids)).update(context="")
    for session in AutonomousSession.objects.filter(pk__in=set(session_ids)).exclude(receipt=None):
        gone = {"findings": [], "proposals": [], "precedents": [], "summary": "", "purged": True}
        AutonomousSession.objects.filter(pk=session.pk).update(
            output="", context="", receipt={**(session.receipt or {}), **gone}
        )


def _told(origin: Origin, verb: str, actor: str) -> OriginRows:
    written = rows_of(origin)
    _record(origin, verb, actor, written)
    return written


def _record(origin: Origin, verb: str, actor: str, written: OriginRows) -> None:
    subject = f"{'autonomous' if origin.kind == 'session' else origin.kind}:{origin.ref}"
    record(AuditEvent.PROVENANCE_PURGED, actor=actor, subject=subject, data={"verb": verb, **written.counts})


def _uuid(text: Any) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise SilasError("origin_unknown", "A task or session is named by its id.", status=422) from None
