"""List, quarantine and purge everything that one task, one session or one skill has written.

What is quarantined is not recalled from this transaction on, and restored when it is released. What is purged is
deleted, with what it was stored as in memory and knowledge and what its sessions left to those that continue them; that
a session ran, and what it cost, stays. Each action is audited with counts. Owners only, in a web process or on the
command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.db.models import BooleanField, F, Func, JSONField, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.enums import Withdrawal
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import SessionStatus
from apps.autonomy.locks import lock_proposals
from apps.autonomy.models import (
    Artifact,
    AutonomousSession,
    Checkpoint,
    ContextProposal,
    Finding,
    MemoryProposal,
    Precedent,
)
from apps.autonomy.services import proposal_storage, session_control
from apps.autonomy.services.precedents import CONTEXT
from apps.autonomy.services.proposals import PROPOSAL
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

Kind = Literal["task", "session", "skill"]
KINDS: tuple[Kind, ...] = ("task", "session", "skill")


class _NamesSkill(Func):
    """Whether one of a row's skills, each `name@digest`, has this reference or name."""

    function, output_field = "jsonb_path_exists", BooleanField()

    def __init__(self, ref: str) -> None:
        variables = {"ref": ref, "name": f"{ref}@"}
        super().__init__(F("skills"), Value("$[*] ? (@ == $ref || @ starts with $name)"), Value(variables, JSONField()))


@dataclass(frozen=True)
class Origin:
    """What rows come from: a task or session by id, a skill by name (all versions) or by reference (one version).

    A session includes its later attempts.
    """

    kind: Kind
    ref: str

    @property
    def condition(self) -> Q:
        match self.kind:
            case "task":
                return Q(task_id=_uuid(self.ref))
            case "session":
                return Q(session_id=_uuid(self.ref)) | Q(root_id=_uuid(self.ref))
            case "skill":
                return Q(_NamesSkill(self.ref))


@dataclass(frozen=True)
class OriginRows:
    """All rows of one origin. `remembered`: the references under which proposals are stored in memory or knowledge."""

    findings: tuple[Finding, ...]
    artifacts: tuple[Artifact, ...]
    proposals: tuple[MemoryProposal, ...]
    precedents: tuple[Precedent, ...]
    contexts: tuple[ContextProposal, ...]

    @property
    def remembered(self) -> tuple[str, ...]:
        return tuple(proposal.result_ref for proposal in self.proposals if proposal.result_ref)

    @property
    def counts(self) -> dict[str, int]:
        return {
            "findings": len(self.findings),
            "artifacts": len(self.artifacts),
            "proposals": len(self.proposals),
            "precedents": len(self.precedents),
            "contexts": len(self.contexts),
            "remembered": len(self.remembered),
        }


def rows_of(origin: Origin) -> OriginRows:
    """All rows of this origin, including proposals that members deleted. Inside a scope."""
    precedents = Precedent.objects.filter(origin.condition)
    contexts = ContextProposal.objects.filter(precedent__in=precedents)
    return OriginRows(
        tuple(Finding.objects.filter(origin.condition)),
        tuple(Artifact.objects.filter(origin.condition)),
        tuple(MemoryProposal.objects.filter(origin.condition)),
        tuple(precedents),
        tuple(contexts),
    )


def quarantine(origin: Origin, *, actor: str) -> OriginRows:
    """Quarantine them: not recalled and not decidable from now on. Safe to repeat: the first time is kept."""
    _withdraw_cards(rows_of(origin), actor)
    for proposal in lock_proposals(MemoryProposal.objects.filter(origin.condition)):
        proposal_storage.remove_from_memory(proposal)
    for model in (Finding, Artifact, MemoryProposal, Precedent):
        model.objects.filter(origin.condition).update(quarantined_at=Coalesce(F("quarantined_at"), now()))
    return _audited_rows(origin, "set_aside", actor)


def release(origin: Origin, *, actor: str) -> OriginRows:
    """End the quarantine: what was kept is stored and recalled again."""
    for model in (Finding, Artifact, MemoryProposal, Precedent):
        model.objects.filter(origin.condition).update(quarantined_at=None)
    for proposal in lock_proposals(MemoryProposal.objects.filter(origin.condition)):
        if proposal_storage.may_be_recalled(proposal) and not proposal.result_ref:
            proposal_storage.enqueue_storage(proposal)
    return _audited_rows(origin, "release", actor)


def purge(origin: Origin, *, actor: str) -> dict[str, int]:
    """Delete them, and the texts of their sessions. Returns how many there were. Cannot be undone.

    Sessions under way that wrote them or continue such a session are ended.
    """
    _withdraw_cards(rows_of(origin), actor)
    # A session under way holds these texts and would write more of them.
    ended = _end_under_way(_writers(rows_of(origin)) | _sessions_of(origin), actor)
    written = rows_of(origin)
    for proposal in lock_proposals(MemoryProposal.objects.filter(origin.condition)):
        proposal_storage.remove_from_memory(proposal)
    # Before the rows are deleted: afterwards nothing tells which sessions wrote them.
    sessions = _writers(written) | _sessions_of(origin) | ended
    ContextProposal.objects.filter(precedent__in=[precedent.pk for precedent in written.precedents]).delete()
    for model in (Finding, Artifact, MemoryProposal, Precedent):
        model.objects.filter(origin.condition).delete()
    _erase_texts(sessions)
    _erase_results(sessions)
    _record(origin, "purge", actor, written)
    return written.counts


def _withdraw_cards(written: OriginRows, actor: str) -> None:
    for kind, rows in ((PROPOSAL, written.proposals), (CONTEXT, written.contexts)):
        for row in rows:
            withdraw_cards_about(kind, row.pk, reason=Withdrawal.STAFF, actor=actor)


def _sessions_of(origin: Origin) -> set[UUID]:
    """The sessions of a task or session, even without rows. Empty for a skill, whose sessions are not recorded."""
    match origin.kind:
        case "task":
            condition = Q(task_id=_uuid(origin.ref))
        case "session":
            condition = Q(pk=_uuid(origin.ref)) | Q(root_id=_uuid(origin.ref))
        case "skill":
            return set()
    return set(AutonomousSession.objects.filter(condition).values_list("pk", flat=True))


def _writers(written: OriginRows) -> set[UUID]:
    rows = (*written.findings, *written.artifacts, *written.proposals, *written.precedents)
    return {row.session_id for row in rows}


def _end_under_way(session_ids: Iterable[UUID], actor: str) -> set[UUID]:
    """End those of these occasions' sessions that run, wait for approval, or are queued to continue another."""
    under_way = _attempts(session_ids).filter(ended_at=None).exclude(status=SessionStatus.QUEUED, root=None)
    ended = list(under_way.order_by("pk").values_list("pk", flat=True))
    for session_id in ended:
        session_control.end_at_once(session_id, actor=actor)
    return set(ended)


def _attempts(session_ids: Iterable[UUID]) -> QuerySet[AutonomousSession]:
    """All sessions of the occasions to which these belong."""
    rows = AutonomousSession.objects.filter(pk__in=set(session_ids))
    roots = set(rows.values_list(Coalesce("root_id", "pk"), flat=True))
    attempts: QuerySet[AutonomousSession] = AutonomousSession.objects.filter(Q(pk__in=roots) | Q(root_id__in=roots))
    return attempts


def _erase_texts(session_ids: Iterable[UUID]) -> None:
    """Erase the texts of sessions from rows, receipts and the context of their children; keep figures."""
    AutonomousSession.objects.filter(parent_id__in=set(session_ids)).update(context="")
    rows = AutonomousSession.objects.filter(pk__in=set(session_ids))
    rows.update(output="", context="")
    for session in rows.exclude(receipt=None):
        erased = {"findings": [], "artifacts": [], "proposals": [], "precedents": [], "summary": "", "purged": True}
        AutonomousSession.objects.filter(pk=session.pk).update(receipt={**(session.receipt or {}), **erased})


def _erase_results(session_ids: Iterable[UUID]) -> None:
    """Erase what phases read and drafted: of every attempt, because a later one goes on with an earlier one's, and of
    the sessions that got these texts as context.
    """
    attempts = _attempts(session_ids).values("pk")
    children = AutonomousSession.objects.filter(parent_id__in=set(session_ids)).values("pk")
    Checkpoint.objects.filter(Q(session__in=attempts) | Q(session__in=children)).update(state=None)


def _audited_rows(origin: Origin, verb: str, actor: str) -> OriginRows:
    written = rows_of(origin)
    _record(origin, verb, actor, written)
    return written


def _record(origin: Origin, verb: str, actor: str, written: OriginRows) -> None:
    subject = f"{'autonomous' if origin.kind == 'session' else origin.kind}:{origin.ref}"
    record(AuditEvent.PROVENANCE_PURGED, actor=actor, subject=subject, data={"verb": verb, **written.counts})


def _uuid(text: object) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise SilasError(ErrorCode.ORIGIN_UNKNOWN) from None
