"""Carry out a session: five phases in order, none left out, each effect by a guarded call (contract A2, C).

Slow, and outside of every transaction. A phase that fails leaves the others to say so: ethics review and delivery run
all the same. A brake stops everything at once. Whatever happens, one terminal handler ends the session with its
receipt. `carry_out` is the consumer of `autonomous_session`, in a worker.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import Error as DatabaseError

from apps.autonomy import planner, rules
from apps.autonomy.builtin_workflows import WORKFLOWS, search_documents
from apps.autonomy.enums import SessionStatus, Severity
from apps.autonomy.guarded_client import Braked, GuardedClient
from apps.autonomy.schemas import ChainNext, Draft, DraftFinding, Notify, storable_text
from apps.autonomy.services import session_run
from apps.autonomy.services.session_end import Ending
from apps.bus import deadlines
from apps.bus.deliveries import Delivery
from apps.bus.schemas import LeaseLost
from apps.guard.enums import Intent, Phase, TerminalReason
from apps.guard.schemas import Done, Failed
from apps.memory.memories import scrubbed
from kernel import fault_points
from kernel.errors import SilasError, error_location
from kernel.llm.briefing import Passage
from kernel.llm.failures import ProviderFailed
from kernel.tenancy import in_scope, in_thread

_log = logging.getLogger(__name__)
_FAULTS = (DatabaseError, ConnectionError, TimeoutError, ProviderFailed)


async def run_session(delivery: Delivery) -> None:
    """One delivery: a session from its first phase to its receipt."""
    job = await in_scope(delivery.tenant_id, session_run.begin_session, delivery)
    if job is not None:
        fault_points.reach("autonomy.begun")
        if job.limits.wall_seconds is not None:
            deadlines.set_deadline(job.limits.wall_seconds + rules.GRACE_SECONDS)
        ending = await _Course(GuardedClient(job)).run()
        await in_scope(delivery.tenant_id, session_run.conclude_session, delivery, job.session_id, ending)
        deadlines.set_deadline()


class _Over(Exception):
    """Somebody else has ended the session."""


@dataclass
class _Course:
    """Where a session stands. `failure` is the first thing that went wrong; `fault` says it was the machine's."""

    hand: GuardedClient
    draft: Draft = field(default_factory=Draft)
    found: tuple[Passage, ...] = ()
    trace: dict[str, Any] | None = None
    failure: str = ""
    fault: bool = False
    written: int = 0
    notes: planner.ResearchNotes | None = None

    async def run(self) -> Ending:
        try:
            for phase in rules.PHASES:
                await self._phase(phase)
        except Braked as brake:
            status, reason = rules.ending_for(brake.code) or (SessionStatus.FAILED, TerminalReason.FAILED)
            return Ending(status, reason, brake.code.value, self._output, state=self._kept())
        except _Over:
            return Ending(SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT, "over")
        if self.failure:
            return Ending(SessionStatus.FAILED, TerminalReason.FAILED, self.failure, self._output, fault=self.fault)
        return self._good_end()

    def _good_end(self) -> Ending:
        reason = TerminalReason.HEALTHY if self.draft.healthy else TerminalReason.COMPLETED
        return Ending(SessionStatus.COMPLETED, reason, output=self._output, awaits=self.draft.awaits, outcome="done")

    async def _phase(self, phase: Phase) -> None:
        """Enter it, do its work; what goes wrong is kept for the phases that say so."""
        if phase is not Phase.INTAKE:
            await self._enter(phase)
        self.hand.phase = phase
        if self.failure and phase in (Phase.ANALYSIS, Phase.DRAFTING):
            return
        try:
            await _WORK[phase](self)
        except (LeaseLost, _Over):
            raise
        except _FAULTS as error:
            self._failed(getattr(error, "reason", type(error).__name__), fault=True)
        except SilasError as error:
            self._failed(error.code)
        except Exception as error:  # noqa: BLE001 (whatever it was, the session ends with its receipt)
            session_id, place = self.hand.job.session_id, error_location(error)
            _log.error("autonomous_phase_failed session=%s phase=%s error=%s", session_id, phase.value, place)
            self._failed(type(error).__name__)

    async def _enter(self, phase: Phase) -> None:
        outcome = self.failure or "done"
        job, state = self.hand.job, self._state()
        there = await in_scope(
            job.tenant_id, session_run.enter_phase, job.session_id, phase, outcome=outcome, state=state
        )
        if not there:
            raise _Over

    def _state(self) -> Mapping[str, Any] | None:
        """What another attempt need not pay for again."""
        if self.failure or self.hand.phase not in (Phase.INTAKE, Phase.ANALYSIS):
            return None
        if self.hand.phase is Phase.INTAKE:
            return {"passages": [vars(each) for each in self.found]}
        return {"draft": self.draft.model_dump(mode="json"), "trace": self.trace}

    def _kept(self) -> Mapping[str, Any] | None:
        """What a stopped analysis has seen: a session that goes on need not pay for it again."""
        in_analysis = self.hand.phase is Phase.ANALYSIS and self.notes is not None
        return self.notes.kept if in_analysis and self.notes is not None else None

    def _failed(self, code: str, *, fault: bool = False) -> None:
        if not self.failure:
            self.failure, self.fault = code[:60], fault

    @property
    def _output(self) -> str:
        return self.draft.summary


async def _intake(course: _Course) -> None:
    """What the documents say to the prompt; ready ways of work read for themselves."""
    fault_points.reach("autonomy.intake")
    job = course.hand.job
    await course.hand.look_at_context()
    if (before := job.done.get(Phase.INTAKE)) is not None:
        course.found = tuple(Passage(**each) for each in before["passages"])
    elif not job.playbook:
        course.found = await search_documents(course.hand, job.prompt)


async def _analysis(course: _Course) -> None:
    fault_points.reach("autonomy.analysis")
    job = course.hand.job
    before = job.done.get(Phase.ANALYSIS)
    if before is not None and "draft" in before:
        course.draft, course.trace = Draft.model_validate(before["draft"]), before.get("trace")
    elif job.playbook:
        course.draft = await WORKFLOWS[job.playbook](course.hand)
    elif job.escalates:
        course.draft = await planner.triage(course.hand, course.found)
    else:
        course.notes = (
            planner.ResearchNotes.of(before["notes"]) if before else planner.start_notes(course.hand, course.found)
        )
        course.draft, course.trace = await planner.research(course.hand, course.notes)
    course.draft = course.draft.model_copy(update={"summary": await in_thread(scrubbed, course.draft.summary)})


async def _drafting(course: _Course) -> None:
    """Each finding, proposal and precedent by a call of its own; what is refused is left out."""
    fault_points.reach("autonomy.drafting")
    draft = course.draft
    for finding in draft.findings:
        course.written += await _written(course, Intent.EMIT_FINDING, "emit_finding", finding)
    for proposal in draft.proposals:
        course.written += await _written(course, Intent.PROPOSE_MEMORY, "propose_memory", proposal)
    for precedent in draft.precedents:
        course.written += await _written(course, Intent.PROPOSE_PRECEDENT, "propose_precedent", precedent)
    wanted = len(draft.findings) + len(draft.proposals) + len(draft.precedents)
    if wanted and not course.written:
        course._failed("nothing_written")


async def _written(course: _Course, intent: Intent, tool: str, what: Any) -> int:
    outcome = await course.hand.call(intent, tool, what.model_dump(mode="json"))
    return int(isinstance(outcome, Done))


async def _ethics_review(course: _Course) -> None:
    """One finding about the work itself: what it took out, where its words come from, what was refused. Always."""
    fault_points.reach("autonomy.ethics_review")
    outcome = await course.hand.call(Intent.EMIT_FINDING, "emit_finding", _reviewed(course).model_dump(mode="json"))
    if isinstance(outcome, Failed):
        course._failed(outcome.code)


def _reviewed(course: _Course) -> DraftFinding:
    draft = course.draft
    texts = [*(each.content for each in draft.findings), *(each.content for each in draft.proposals)]
    masked = sum(scrubbed(text) != text for text in texts)
    strangers = sum(not proposal.evidence.get("known") for proposal in draft.proposals)
    flags = {
        f"personal data or secrets were taken out of {masked} texts": masked,
        f"{strangers} proposals rest on what visitors or models wrote": strangers,
        f"calls were refused or failed: {', '.join(course.hand.refused)}": len(course.hand.refused),
        f"the work broke off: {course.failure}": bool(course.failure),
    }
    said = [words for words, holds in flags.items() if holds]
    severity = Severity.WARN if masked or course.failure else Severity.INFO
    content = storable_text("\n".join(f"- {each}" for each in said), 8000)
    title = "Review: look at this" if said else "Review: nothing to flag"
    return DraftFinding(title=title, content=content, severity=severity)


async def _delivery(course: _Course) -> None:
    """The result goes where the task says, only when all went well; otherwise the owner is told that it did not."""
    fault_points.reach("autonomy.delivery")
    job, failed = course.hand.job, bool(course.failure)
    route = Notify() if course.draft.awaits else job.route
    delegated = [each.model_dump(mode="json") for each in course.draft.delegated]
    args = {"route": route.model_dump(mode="json"), "failed": failed, "signal": course.draft.signal}
    args |= {"delegated": delegated} if delegated else {}
    tool = "notice" if failed else f"deliver_{route.kind}"
    reviewed = () if failed else course.draft.reviewed
    outcome = await course.hand.call(Intent.NOTIFY, tool, args, output=_passed_on(course), reviewed=reviewed)
    if isinstance(outcome, Failed):
        course._failed(outcome.code)


def _passed_on(course: _Course) -> str:
    """The result in words, for memory or for the task that follows."""
    findings = "\n".join(f"- {each.title}" for each in course.draft.findings)
    brief = isinstance(course.hand.job.route, ChainNext)
    return "\n".join(filter(None, (course.draft.summary, findings)))[: 8000 if brief else 5000]


_WORK = {
    Phase.INTAKE: _intake,
    Phase.ANALYSIS: _analysis,
    Phase.DRAFTING: _drafting,
    Phase.ETHICS_REVIEW: _ethics_review,
    Phase.DELIVERY: _delivery,
}
