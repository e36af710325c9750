"""Run a session: five phases in a fixed order, none left out, each effect by a guarded call (contract autonomy A2, C).

Slow, and outside of every transaction. When a phase fails, ethics review and delivery still run, so that the failure is
reported. A brake stops everything at once. In every case, one terminal handler ends the session with its receipt.
`run_session` is the consumer of `autonomous_session`, in a worker.
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
from apps.autonomy.schemas import (
    ChainNext,
    Draft,
    DraftArtifact,
    DraftFinding,
    DraftPrecedent,
    DraftProposal,
    Notify,
    Silent,
    storable_text,
)
from apps.autonomy.services import session_run
from apps.autonomy.services.session_end import Ending
from apps.bus import deadlines
from apps.bus.deliveries import Delivery
from apps.bus.schemas import LeaseLost
from apps.guard.enums import Intent, Phase, TerminalReason
from apps.guard.schemas import Done, Failed
from apps.memory.memories import scrub
from kernel import fault_points
from kernel.errors import SilasError, error_location
from kernel.tenancy import in_scope, in_thread
from llm.briefing import Passage
from llm.failures import ProviderFailed

_log = logging.getLogger(__name__)
# Faults of the machine, not of the task: the occasion is tried again.
_FAULTS = (DatabaseError, ConnectionError, TimeoutError, ProviderFailed)


async def run_session(delivery: Delivery) -> None:
    """Run the delivered session from its first phase to its receipt."""
    job = await in_scope(delivery.tenant_id, session_run.begin_session, delivery)
    if job is None:
        return
    fault_points.reach("autonomy.begun")
    if job.limits.wall_seconds is not None:
        deadlines.set_deadline(job.limits.wall_seconds + rules.GRACE_SECONDS)
    ending = await PhaseRunner(GuardedClient(job)).run()
    await in_scope(delivery.tenant_id, session_run.conclude_session, delivery, job.session_id, ending)
    deadlines.set_deadline()


class _EndedElsewhere(Exception):
    """The session was ended by something other than this run."""


@dataclass
class PhaseRunner:
    """The state of a running session. `failure` is the code of the first failure; `fault` marks one of the machine.

    `written` counts the parts of the draft that were written or refused.
    """

    client: GuardedClient
    draft: Draft = field(default_factory=Draft)
    passages: tuple[Passage, ...] = ()
    trace: dict[str, Any] | None = None
    failure: str = ""
    fault: bool = False
    notes: planner.ResearchNotes | None = None
    written: int = 0

    async def run(self) -> Ending:
        try:
            for phase in rules.PHASES:
                await self._run_phase(phase)
        except Braked as brake:
            status, reason = rules.ending_for(brake.code) or (SessionStatus.FAILED, TerminalReason.FAILED)
            return Ending(status, reason, brake.code.value, self.draft.summary, state=self._interrupted_work())
        except _EndedElsewhere:
            return Ending(SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT, "over")
        if self.failure:
            return Ending(
                SessionStatus.FAILED, TerminalReason.FAILED, self.failure, self.draft.summary, fault=self.fault
            )
        reason = TerminalReason.HEALTHY if self.draft.healthy else TerminalReason.COMPLETED
        return Ending(
            SessionStatus.COMPLETED, reason, output=self.draft.summary, awaits=self.draft.awaits, outcome="done"
        )

    async def _run_phase(self, phase: Phase) -> None:
        """Enter the phase and do its work; a failure is kept for the later phases, which report it."""
        if phase is not Phase.INTAKE:
            await self._enter(phase)
        self.client.phase = phase
        if self.failure and phase in (Phase.ANALYSIS, Phase.DRAFTING):
            return
        try:
            await _WORK[phase](self)
        except (LeaseLost, _EndedElsewhere):
            raise
        except _FAULTS as error:
            self.fail(getattr(error, "reason", type(error).__name__), fault=True)
        except SilasError as error:
            self.fail(error.code)
        except Exception as error:  # noqa: BLE001 (after any error the session ends with its receipt)
            session_id, location = self.client.job.session_id, error_location(error)
            _log.error("autonomous_phase_failed session=%s phase=%s error=%s", session_id, phase.value, location)
            self.fail(type(error).__name__)

    async def _enter(self, phase: Phase) -> None:
        job = self.client.job
        entered = await in_scope(
            job.tenant_id,
            session_run.enter_phase,
            job.session_id,
            phase,
            outcome=self.failure or "done",
            state=self._phase_result(),
        )
        if not entered:
            raise _EndedElsewhere

    def _phase_result(self) -> Mapping[str, object] | None:
        """What the phase that ends has done, stored so that another attempt does not repeat and pay for it."""
        if self.failure:
            return None
        match self.client.phase:
            case Phase.INTAKE:
                return {"passages": [vars(passage) for passage in self.passages]}
            case Phase.ANALYSIS:
                return {"draft": self.draft.model_dump(mode="json"), "trace": self.trace, "replaced": self._replaced}
            case Phase.DRAFTING:
                return {"written": self.written}
        return None

    def _interrupted_work(self) -> Mapping[str, object] | None:
        """What a stopped phase has done so far, for a session that continues it."""
        match self.client.phase:
            case Phase.ANALYSIS if self.notes is not None:
                return {**self.notes.checkpoint_state, "replaced": self._replaced}
            case Phase.ANALYSIS:
                return {"reads": self.client.reads}
            case Phase.DRAFTING:
                return {"written": self.written}
        return None

    @property
    def _replaced(self) -> dict[str, int]:
        return self.client.anonymiser.counts

    def fail(self, code: str, *, fault: bool = False) -> None:
        if not self.failure:
            self.failure, self.fault = code[:60], fault


async def _intake(runner: PhaseRunner) -> None:
    """Search the documents for the prompt. Built-in workflows do their own reading."""
    fault_points.reach("autonomy.intake")
    job = runner.client.job
    await runner.client.screen_context()
    if (stored := job.done.get(Phase.INTAKE)) is not None:
        runner.passages = tuple(Passage(**passage) for passage in stored["passages"])
    elif not job.playbook:
        runner.passages = await search_documents(runner.client, job.prompt)


async def _analysis(runner: PhaseRunner) -> None:
    """Come to a draft: from an earlier attempt, a built-in workflow, or a model."""
    fault_points.reach("autonomy.analysis")
    client, job = runner.client, runner.client.job
    stored = job.done.get(Phase.ANALYSIS)
    if stored is not None and "draft" in stored:
        runner.draft, runner.trace = Draft.model_validate(stored["draft"]), stored.get("trace")
    elif job.playbook:
        runner.draft = await WORKFLOWS[job.playbook](client)
    elif job.escalates:
        runner.draft = await planner.triage(client, runner.passages)
    else:
        if stored is not None and "notes" in stored:
            runner.notes = planner.ResearchNotes.from_checkpoint(stored["notes"])
        else:
            runner.notes = planner.start_notes(client, runner.passages)
        runner.draft, runner.trace = await planner.research(client, runner.notes)
    runner.draft = runner.draft.model_copy(update={"summary": await in_thread(scrub, runner.draft.summary)})


async def _drafting(runner: PhaseRunner) -> None:
    """Write each finding, artifact, proposal and precedent by a call of its own; what is refused is left out.

    What an earlier session of the occasion has written is not written again.
    """
    fault_points.reach("autonomy.drafting")
    draft, job = runner.draft, runner.client.job
    writes: list[tuple[Intent, str, DraftFinding | DraftArtifact | DraftProposal | DraftPrecedent]] = [
        *((Intent.EMIT_FINDING, "emit_finding", finding) for finding in draft.findings),
        *((Intent.EMIT_ARTIFACT, "emit_artifact", artifact) for artifact in draft.artifacts),
        *((Intent.PROPOSE_MEMORY, "propose_memory", proposal) for proposal in draft.proposals),
        *((Intent.PROPOSE_PRECEDENT, "propose_precedent", precedent) for precedent in draft.precedents),
    ]
    runner.written = min(job.done.get(Phase.DRAFTING, {}).get("written", 0), len(writes))
    succeeded = runner.written
    for intent, tool, row in writes[runner.written :]:
        outcome = await runner.client.call(intent, tool, row.model_dump(mode="json"))
        succeeded += isinstance(outcome, Done)
        runner.written += 1
    if writes and not succeeded:
        runner.fail("nothing_written")


async def _ethics_review(runner: PhaseRunner) -> None:
    """Write one finding about the work itself: what was masked, where its words come from, what was refused."""
    fault_points.reach("autonomy.ethics_review")
    if runner.draft.quiet and not runner.failure and not runner.client.refused:
        return
    review = _review_finding(runner)
    outcome = await runner.client.call(Intent.EMIT_FINDING, "emit_finding", review.model_dump(mode="json"))
    if isinstance(outcome, Failed):
        runner.fail(outcome.code)


def _review_finding(runner: PhaseRunner) -> DraftFinding:
    draft, refused = runner.draft, runner.client.refused
    texts = [
        *(finding.content for finding in draft.findings),
        *(artifact.content for artifact in draft.artifacts),
        *(proposal.content for proposal in draft.proposals),
    ]
    masked = sum(scrub(text) != text for text in texts)
    unverified = sum(not proposal.evidence.get("known") for proposal in draft.proposals)
    flags = {
        f"Personal data or secrets were removed from {masked} texts": masked,
        f"{unverified} proposals rest on what visitors or models wrote": unverified,
        f"Calls were refused or failed: {', '.join(refused)}": len(refused),
        f"The run stopped early: {runner.failure}": bool(runner.failure),
    }
    raised = [text for text, applies in flags.items() if applies]
    return DraftFinding(
        title="Review: needs attention" if raised else "Review: nothing to flag",
        content=storable_text("\n".join(f"- {text}" for text in raised), 8000),
        severity=Severity.WARN if masked or runner.failure else Severity.INFO,
    )


async def _delivery(runner: PhaseRunner) -> None:
    """Send the result where the task says if all went well; otherwise tell the owner that it did not."""
    fault_points.reach("autonomy.delivery")
    job, draft, failed = runner.client.job, runner.draft, bool(runner.failure)
    # A result that waits for a person's approval is announced, wherever it would go later.
    route = Notify() if draft.awaits else Silent() if draft.quiet and isinstance(job.route, Notify) else job.route
    args: dict[str, object] = {"route": route.model_dump(mode="json"), "failed": failed, "signal": draft.signal}
    if draft.delegated:
        args["delegated"] = [question.model_dump(mode="json") for question in draft.delegated]
    findings = "\n".join(f"- {finding.title}" for finding in draft.findings)
    output = "\n".join(filter(None, (draft.summary, findings)))
    outcome = await runner.client.call(
        Intent.NOTIFY,
        "notice" if failed else f"deliver_{route.kind}",
        args,
        output=output[: 8000 if isinstance(job.route, ChainNext) else 5000],
        reviewed=() if failed else draft.reviewed,
        present=None if failed else draft.present,
    )
    if isinstance(outcome, Failed):
        runner.fail(outcome.code)


_WORK = {
    Phase.INTAKE: _intake,
    Phase.ANALYSIS: _analysis,
    Phase.DRAFTING: _drafting,
    Phase.ETHICS_REVIEW: _ethics_review,
    Phase.DELIVERY: _delivery,
}
