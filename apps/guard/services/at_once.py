"""A call against which nothing speaks: judged here by what this process knows of its run, then looked after, reserved
for and written down by one call of the database (ADR 96).

Only ever a yes. Whatever is otherwise than remembered, is refused, has gates with something to say, needs a person or
is a matter of another room's policy is `admit_call`'s.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from django.conf import settings

from apps.gates.schemas import GateReport
from apps.guard import rules
from apps.guard.enums import CallOutcomeLabel, Intent
from apps.guard.estimates import rounded
from apps.guard.known import KnownRun, known
from apps.guard.ledger import write_admission_at_once
from apps.guard.moves_sql import SEQ
from apps.guard.schemas import ZERO, Admitted, Call, RunRef
from apps.guard.services.admission import about_to_be_admitted, told_of_call
from kernel.clock import now

# Our clock and the database's may differ by as much, and no day may end within it: windows are counted by days.
_LEEWAY = timedelta(minutes=1)


def ordinary(ref: RunRef, intent: Intent, call: Call, report: GateReport | None) -> KnownRun | None:
    """The run as it is remembered, if `admit_at_once` may be asked about this call of it."""
    run = known(ref.tenant_id, ref.run_id)
    if call.leaves or intent in rules.OUTSIDE:
        return None
    if run is None or call.acting or call.forecast is not None or intent in rules.MODEL_RUNS:
        return None
    if report is not None and (report.audit or report.blocked or report.needs_approval):
        return None
    granted = rules.r6(run.facts, intent=intent, tool=call.tool, access=call.access) is None
    return run if granted else None


def admit_at_once(run: KnownRun, ref: RunRef, intent: Intent, call: Call) -> Admitted | None:
    """Reserve, in the one statement of the caller's scope (`in_statement`). None: nothing has happened, and
    `admit_call` has to be asked."""
    begun = now()
    since, until = begun - _LEEWAY, begun + _LEEWAY
    day, platform_day = rules.day_in(run.zone, since), rules.day_in(settings.TIME_ZONE, since)
    if (day, platform_day) != (rules.day_in(run.zone, until), rules.day_in(settings.TIME_ZONE, until)):
        return None
    admitted = _admission(run, ref, intent, call)
    until = until if call.access_until is None else min(until, call.access_until)
    about_to_be_admitted()
    told = told_of_call(admitted, CallOutcomeLabel.STARTED)
    return write_admission_at_once(admitted, run, told, valid=(since, until), days=(day, platform_day))


def _admission(run: KnownRun, ref: RunRef, intent: Intent, call: Call) -> Admitted:
    call_id = uuid4()
    seconds = run.facts.seconds + (now() - run.facts.now).total_seconds()
    patience = rules.patience(replace(run.facts, seconds=seconds), call.patience_seconds)
    payers = (run.tenant_id, run.deployment_id, run.task_ref, ref.visitor)
    return Admitted(
        call_id=call_id,
        run=ref,
        deployment_id=run.deployment_id,
        seq=SEQ,
        intent=intent,
        call=replace(call, patience_seconds=patience),
        acting=False,
        effect_key=str(call_id),
        reserved=ZERO if call.estimate is None else rounded(call.estimate),
        spends_from=tuple(each for each in payers if each),
    )
