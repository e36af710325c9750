"""Trials of a proposed version: its scripts are tried, a card asks for approval, its scripts are tried again after the
approval, and only then is the version in use.

The card shows what the approval binds (content, report); the approval is spent in the transaction of the decision.
Sandboxes run outside of transactions, in a worker without the signing key, which may neither open cards nor write
versions (spec 10.4, ADR 71): it reports how each script ended. The trusted worker accepts a report for exactly the
scripts of the version, and opens the card or settles. Messages have the version as their scope.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from apps.approvals.cards.schemas import Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.approvals.tokens.payloads import approvable
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery, Undeliverable
from apps.bus.enums import Kind, SetAside
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.bus.signals import set_aside
from apps.skills import card_content, dry_runs, queries
from apps.skills.dry_runs import Trial
from apps.skills.enums import SkillStatus
from apps.skills.locks import lock_skill
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from apps.skills.services import audit_data, change_status
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.tenancy import in_scope
from kernel.unicode_safety import replace_unstorable

SUBJECT = "skill"


class _ScriptResult(BaseModel):
    """How one script's dry run ended, as `Trial`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    script: str = Field(max_length=300)
    ok: bool | None
    said: Annotated[str, Field(max_length=300), AfterValidator(replace_unstorable)]


class Report(BaseModel):
    """The report of a trial. `approved`: the trial came after the approval. Without `trials` no trial came to its
    end."""

    model_config = ConfigDict(extra="forbid")

    approved: bool
    trials: list[_ScriptResult] | None = Field(max_length=dry_runs.MAX_SCRIPTS)


def enqueue_trial(version: SkillVersion) -> None:
    """Have the version's scripts tried, in the transaction that made it wait for that."""
    enqueue(Kind.SKILL_TRIAL, scope_id=version.pk)


async def run_trial(delivery: Delivery) -> None:
    """Try the version's scripts and report. Handler of `Kind.SKILL_TRIAL`, on the queue `work`."""
    waiting = await in_scope(delivery.tenant_id, _with_folder, UUID(delivery.message.subject))
    if waiting is None:
        return
    version, folder = waiting
    trials = await asyncio.to_thread(dry_runs.dry_run, SkillManifest.model_validate(version.manifest), folder)
    await delivery.commit(_enqueue_report, version, dry_runs.as_report(trials))


def give_up(message: QueueMessage) -> bool:
    """Report a trial whose message is dead: the trusted worker withdraws the version, and tells the requester."""
    version = _waiting(UUID(message.subject))
    if version is not None:
        _enqueue_report(version, None)
    return version is not None


async def handle_report(delivery: Delivery) -> None:
    """Open the card or settle, by the report. Handler of `Kind.SKILL_TRIED`, on the queue `trusted`."""
    try:
        report = Report.model_validate(delivery.message.payload)
    except ValidationError:
        raise Undeliverable(ErrorCode.REPORT_UNREADABLE, "The report has an unexpected shape.") from None
    await delivery.commit(_apply_report, UUID(delivery.message.subject), report)


def _waiting(version_id: UUID) -> SkillVersion | None:
    """Return the version if it waits for a trial: no card was opened yet, or the approval was given."""
    waits = Q(card_id=None) | Q(approval_token__isnull=False)
    version: SkillVersion | None = SkillVersion.objects.filter(
        waits, pk=version_id, status=SkillStatus.PROPOSED
    ).first()
    return version


def _with_folder(version_id: UUID) -> tuple[SkillVersion, Path] | None:
    version = _waiting(version_id)
    return None if version is None else (version, queries.folder_of(version))


def _enqueue_report(version: SkillVersion, trials: list[dict[str, object]] | None) -> None:
    payload = {"approved": version.approval_token_id is not None, "trials": trials}
    enqueue(Kind.SKILL_TRIED, scope_id=version.pk, payload=payload)


def _apply_report(version_id: UUID, report: Report) -> None:
    version = _waiting(version_id)
    if version is None or report.approved != (version.approval_token_id is not None):
        return
    if report.trials is None:
        _withdraw_failed(version)
        return
    trials = [Trial(result.script, result.ok, result.said) for result in report.trials]
    if [trial.script for trial in trials] != dry_runs.scripts_of(SkillManifest.model_validate(version.manifest)):
        raise Undeliverable(ErrorCode.REPORT_OF_OTHER_SCRIPTS, "The report names other scripts than the version has.")
    if report.approved:
        _settle(version, trials)
    else:
        _open_card(version, trials)


def _open_card(version: SkillVersion, trials: list[Trial]) -> None:
    """Open the card about the version, once."""
    waiting = [row for row in lock_skill(version.name) if row.pk == version.pk and row.card_id is None]
    if not waiting or waiting[0].status != SkillStatus.PROPOSED:
        return
    report = {**version.report, "dry_run": dry_runs.as_report(trials)}
    before = queries.current_version(version.name)
    card = open_card(
        CardKind.SKILL_INSTALL,
        subject=CardSubject(SUBJECT, version.pk),
        binding=Binding(ApprovalScope.SKILL_INSTALL, card_content.approval_payload(version, report), reversible=True),
        text=_text(version, before, trials),
        body=card_content.card_body(version, before, report),
    )
    SkillVersion.objects.filter(pk=version.pk).update(card_id=card.pk, report=report)


def _text(version: SkillVersion, before: SkillVersion | None, trials: list[Trial]) -> CardText:
    what = f"Update the skill {version.name} to version {version.number}" if before else f"Use the skill {version.name}"
    failed = [trial.line for trial in trials if trial.ok is False]
    return CardText(
        intent=what,
        rationale="Nothing runs before you approve. The approval covers exactly these files; any other content needs "
        "a new one." + (" Its dry run failed." if failed else ""),
        consequence={"approve": "Use this version", "decline": "Keep it out"},
        affected=f"{version.name}, version {version.number}",
        facts=[Fact("Dry run", text=line) for line in failed[:5]],
    )


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Apply a person's decision about a version, in its transaction: an approval is spent here, for exactly what was
    shown."""
    version = SkillVersion.objects.filter(pk=card.subject_id, card_id=card.pk, status=SkillStatus.PROPOSED).first()
    if version is None:
        return
    if token is None:
        withdraw(version, "declined")
        return
    verdict = verify_token(
        token, approvable(ApprovalScope.SKILL_INSTALL, card_content.approval_payload(version, version.report))
    )
    if not verdict.ok:
        withdraw(version, verdict.reason.value)
        return
    SkillVersion.objects.filter(pk=version.pk).update(approval_token=token)
    enqueue_trial(version)


def withdraw_unanswered(card: Card) -> None:
    """Withdraw the version whose card expired or was withdrawn."""
    version = SkillVersion.objects.filter(pk=card.subject_id, card_id=card.pk, status=SkillStatus.PROPOSED).first()
    if version is not None:
        withdraw(version, card.status)


def withdraw(version: SkillVersion, reason: str) -> None:
    """Withdraw the version; the same content may be proposed again."""
    change_status(version, SkillStatus.WITHDRAWN, report={**version.report, "withdrawn": reason})
    data: dict[str, object] = {**audit_data(version), "reason": reason}
    record(AuditEvent.SKILL_WITHDRAWN, subject=f"skill:{version.pk}", data=data)


def _withdraw_failed(version: SkillVersion) -> None:
    withdraw(version, "trial_failed")
    set_aside(SetAside.SKILL, version.requested_by)


def _settle(version: SkillVersion, trials: list[Trial]) -> None:
    """Activate the version after its approval when its scripts passed, or withdraw it."""
    report = {**version.report, "trial": dry_runs.as_report(trials)}
    SkillVersion.objects.filter(pk=version.pk).update(report=report)
    version.report = report
    if not dry_runs.all_passed(trials):
        _withdraw_failed(version)
        return
    change_status(version, SkillStatus.ACTIVE, activated_at=now())
    record(AuditEvent.SKILL_INSTALLED, subject=f"skill:{version.pk}", data=audit_data(version))
