"""What happens between a proposal and its use? A web process tries the scripts, asks a person, tries them again after
the yes, and only then lets the version be found.

Always holds: the card shows what the yes binds (content, report); the yes is spent in the transaction of the decision;
sandboxes run outside of transactions; a version is claimed before it is tried, and what a dead process left is claimed
anew. Workers can do none of this: they may neither ask nor write versions (spec 10.4, ADR 71).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps.approvals import services as approvals
from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.payloads import approvable
from apps.approvals.schemas import Fact
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import SetAside
from apps.bus.signals import set_aside
from apps.skills import dry_runs, queries, showing
from apps.skills.dry_runs import Trial
from apps.skills.enums import SkillStatus
from apps.skills.locks import lock_skill
from apps.skills.models import SkillVersion
from apps.skills.schemas import SkillManifest
from apps.skills.services import move, told
from kernel.clock import now
from kernel.tenancy import over_each, tenant_scope

SUBJECT = "skill"
_CLAIM_SECONDS = 300


def work_off() -> int:
    """Try whatever waits, of every tenant; how many there were. In a web process, outside of any scope."""
    try:
        return over_each(_waiting_tenants(), try_next)
    finally:
        connection.close()


def _waiting_tenants() -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT skills_waiting_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def try_next(tenant_id: UUID) -> int:
    """One version of this tenant, outside of any scope; how many there were."""
    with tenant_scope(tenant_id):
        version = _claimed()
    if version is None:
        return 0
    # Apart from the claim: a version that cannot be read stays claimed for a while, and the next one has its turn.
    with tenant_scope(tenant_id):
        folder = queries.folder_of(version)
    trials = dry_runs.dry_run(SkillManifest.model_validate(version.manifest), folder)
    with tenant_scope(tenant_id):
        if version.approval_token_id:
            _settle(version, trials)
        else:
            _ask(version, trials)
    return 1


def _claimed() -> SkillVersion | None:
    waits = Q(card_id=None) | Q(approval_token__isnull=False)
    free = Q(claimed_until=None) | Q(claimed_until__lte=now())
    due = SkillVersion.objects.filter(waits, free, status=SkillStatus.PROPOSED).order_by("created_at")
    found: SkillVersion | None = due.select_for_update(of=("self",), skip_locked=True, no_key=True).first()
    if found is not None:
        SkillVersion.objects.filter(pk=found.pk).update(claimed_until=now() + timedelta(seconds=_CLAIM_SECONDS))
    return found


def _ask(version: SkillVersion, trials: list[Trial]) -> None:
    """Put the version before a person, once."""
    waiting = [each for each in lock_skill(version.name) if each.pk == version.pk and each.card_id is None]
    if not waiting or waiting[0].status != SkillStatus.PROPOSED:
        return
    report = {**version.report, "dry_run": dry_runs.as_report(trials)}
    before = queries.current(version.name)
    card = approvals.open_card(
        CardKind.SKILL_INSTALL,
        about=About(SUBJECT, version.pk),
        binding=Binding(ApprovalScope.SKILL_INSTALL, showing.payload(version, report), reversible=True),
        text=_text(version, before, trials),
        body=showing.body(version, before, report),
    )
    SkillVersion.objects.filter(pk=version.pk).update(card_id=card.pk, report=report, claimed_until=None)


def _text(version: SkillVersion, before: SkillVersion | None, trials: list[Trial]) -> CardText:
    what = f"Update the skill {version.name} to version {version.number}" if before else f"Use the skill {version.name}"
    failed = [trial.line for trial in trials if trial.ok is False]
    return CardText(
        intent=what,
        rationale="Nobody and nothing runs it before a yes. The yes is about exactly these files; any other byte needs "
        "another one." + (" Its dry run failed." if failed else ""),
        consequence={"approve": "Use this version", "decline": "Keep it out"},
        affected=f"{version.name}, version {version.number}",
        facts=[Fact("Dry run", text=line) for line in failed[:5]],
    )


def decided(card: Card, token: ApprovalToken | None) -> None:
    """A person answered about a version, in that transaction: their yes is spent here, for exactly what was shown."""
    version = SkillVersion.objects.filter(pk=card.subject_id, card_id=card.pk, status=SkillStatus.PROPOSED).first()
    if version is None:
        return
    if token is None:
        withdraw(version, "declined")
        return
    verdict = approvals.verify(token, approvable(ApprovalScope.SKILL_INSTALL, showing.payload(version, version.report)))
    if not verdict.ok:
        withdraw(version, verdict.reason.value)
        return
    SkillVersion.objects.filter(pk=version.pk).update(approval_token=token, claimed_until=None)


def withdraw(version: SkillVersion, reason: str) -> None:
    """Nothing came of it; the same content may be proposed anew."""
    move(version, SkillStatus.WITHDRAWN, report={**version.report, "withdrawn": reason})
    data: dict[str, Any] = {**told(version), "reason": reason}
    record(AuditEvent.SKILL_WITHDRAWN, subject=f"skill:{version.pk}", data=data)


def _settle(version: SkillVersion, trials: list[Trial]) -> None:
    """After the yes: in use when its scripts stood their trial, withdrawn when not."""
    report = {**version.report, "trial": dry_runs.as_report(trials)}
    SkillVersion.objects.filter(pk=version.pk).update(report=report)
    version.report = report
    if not dry_runs.stood(trials):
        withdraw(version, "trial_failed")
        set_aside(SetAside.SKILL, version.requested_by)
        return
    move(version, SkillStatus.ACTIVE, activated_at=now(), claimed_until=None)
    record(AuditEvent.SKILL_INSTALLED, subject=f"skill:{version.pk}", data=told(version))
