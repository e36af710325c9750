"""Run the gates of one trigger with `check_gates` (spec 5.4).

Touches no database and may wait for scripts, so call it in a thread, outside any scope. All policy gates run first, in
the given order, then quality gates on the rewritten context. The mutation allow-list is enforced here only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

from django.utils.crypto import salted_hmac
from opentelemetry import metrics

from apps.audit.enums import AuditEvent
from apps.gates import rules
from apps.gates.allowance import Allowance
from apps.gates.detectors.normalise import Spellings
from apps.gates.enums import GateAction, GateCode, GateLane, GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.providers.base import Request
from apps.gates.providers.script import claim_for, needs_claim
from apps.gates.schemas import AuditNote, GateReport, GateResult, GateSpec
from kernel import tracing
from kernel.canonical import canonical_json
from kernel.stored_texts import stored_text
from kernel.tracing import SpanName
from sandbox.spec import Mount

_verdicts = metrics.get_meter("silas.gates").create_counter("gate_verdicts", description="Results of gates")


def scripts_due(gates: Iterable[GateSpec], trigger: str, context: Mapping[str, object]) -> tuple[GateSpec, ...]:
    """The script gates of `trigger` that will really run: an identity check without a claim does not."""
    scripts = (gate for gate in gates if gate.on == trigger and PROVIDERS[gate.provider].reads_files)
    return tuple(gate for gate in scripts if not needs_claim(gate) or claim_for(gate, context) is not None)


def check_gates(
    gates: Iterable[GateSpec],
    trigger: str,
    context: Mapping[str, object],
    *,
    level_gates: Iterable[str] | None = None,
    files: Mapping[str, Mapping[str, Mount]] | None = None,
    allowance: Allowance | None = None,
) -> GateReport:
    """Evaluate the gates of one trigger.

    `context` by trigger: `message`, `recent` (the visitor's messages before it, oldest first), `verified_gates`;
    `response`; `tool_name`, `tool_args`; `content` and the `tool_name` it came from; for `after_step`, `step` and
    `values`. `level_gates`: names that some access level requires, None for all. `files`: by gate name, a script's
    read-only mounts (`skill`, `records`). `allowance`: the turn's, shared by all its triggers; without one this call
    has one of its own, and no model.
    """
    levels = level_gates if level_gates is None else frozenset(level_gates)
    run = _Run(dict(context), levels, files or {}, allowance or Allowance())
    due = [gate for gate in gates if _applies(gate, trigger, context)]
    if not due:
        return run.report()
    with tracing.span(SpanName.GATES, trigger=str(trigger), gates=len(due)) as span:
        for gate in due:
            if gate.lane == GateLane.POLICY:
                run.policy(gate)
        for gate in due:
            if gate.lane == GateLane.QUALITY:
                run.quality(gate)
        report = run.report()
        deciding = report.blocked or report.needs_approval
        span.set(outcome=GateAction(deciding.action) if deciding else GateAction.CONTINUE)
    for result in (*report.policy, *report.quality):
        _verdicts.add(1, {"trigger": str(trigger), "lane": str(result.lane), "action": str(result.action)})
    return report


class _Run:
    """State of one evaluation: the context as rewritten so far, the results, and the audit notes."""

    def __init__(
        self,
        context: dict[str, object],
        level_gates: frozenset[str] | None,
        files: Mapping[str, Mapping[str, Mount]],
        allowance: Allowance,
    ) -> None:
        self.context = context
        self.allowance = allowance
        self.level_gates = level_gates
        self.files = files
        self.spellings = Spellings()
        self.policy_results: list[GateResult] = []
        self.quality_results: list[GateResult] = []
        self.notes: list[AuditNote] = []

    def policy(self, gate: GateSpec) -> None:
        result = self._run_policy(gate)
        self.policy_results.append(self._mutate(result))
        if result.action == GateAction.BLOCK:
            first = sum(1 for other in self.policy_results if other.action == GateAction.BLOCK) == 1
            # The sender is the visitor, or the bot in an answer or a call (spec 5.1.1, rule 3).
            self._note(AuditEvent.GATE_BLOCKED, result, first=first, sender=str(self.context.get("sender") or "bot"))
        elif result.action == GateAction.REQUIRE_APPROVAL:
            self._note(AuditEvent.GATE_ASKED, result)

    def quality(self, gate: GateSpec) -> None:
        """Quality gates are advisory: any other action is coerced to continue.

        A missing provider blocks as in policy.
        """
        if gate.provider not in PROVIDERS:
            self.policy(gate)
            return
        if not self.allowance.take():
            self.notes.append((AuditEvent.GATE_LEFT_OUT, {"gate": gate.name, "code": GateCode.TOO_MANY}))
            return
        result = self._evaluate(gate)
        if result.action != GateAction.CONTINUE or result.modified_context:
            self._note(AuditEvent.QUALITY_LANE_VIOLATION, result)
            # A model that only advises must not be able to block or rewrite by any answer.
            result = replace(result, action=GateAction.CONTINUE, modified_context=None)
        self._note(AuditEvent.QUALITY_GATE, result, score=result.score, flags=len(result.flags))
        self.quality_results.append(result)

    def report(self) -> GateReport:
        return GateReport(tuple(self.policy_results), tuple(self.quality_results), self.context, tuple(self.notes))

    def _run_policy(self, gate: GateSpec) -> GateResult:
        compute_limit = self.allowance.compute_limit
        if compute_limit is not None and compute_limit.is_exhausted:
            return self._block(gate, GateCode.TOO_LATE, stored_text("Out of time to check this"))
        if not self.allowance.take():
            return self._block(gate, GateCode.TOO_MANY, stored_text("This turn has reached its limit of checks"))
        with compute_limit.measure() if compute_limit else nullcontext():
            return self._evaluate(gate)

    def _evaluate(self, gate: GateSpec) -> GateResult:
        provider = PROVIDERS.get(gate.provider)
        if provider is None:
            return self._block(
                gate, GateCode.PROVIDER_MISSING, stored_text("Unknown check: {provider}").format(provider=gate.provider)
            )
        is_level_gate = self.level_gates is None or gate.name in self.level_gates
        files = self.files.get(gate.name, {})
        request = Request(gate, self.context, files, is_level_gate, self.allowance.ask, self.spellings)
        try:
            return provider.evaluate(request)
        except Exception as error:  # noqa: BLE001 - fail closed after any error of a provider
            return self._block(gate, GateCode.PROVIDER_FAILED, type(error).__name__)

    def _block(self, gate: GateSpec, code: GateCode, reason: str) -> GateResult:
        return GateResult(gate.name, GateLane.POLICY, GateAction.BLOCK, code, reason, gate.on_block)

    def _mutate(self, result: GateResult) -> GateResult:
        """Merge permitted changes of continuing gates, and note what changed and what was dropped."""
        if not result.modified_context or result.action != GateAction.CONTINUE:
            return result
        kept, dropped = rules.split_mutations(result.modified_context)
        for name in dropped:
            self._note(AuditEvent.REJECTED_MUTATION, result, key=name)
        for name, value in kept.items():
            before, after = _as_text(self.context.get(name)), _as_text(value)
            marks = {"before_mark": _mark(before), "after_mark": _mark(after)}
            self._note(AuditEvent.GATE_MUTATION, result, key=name, before=len(before), after=len(after), **marks)
        self.context = rules.merge(self.context, kept)
        return replace(result, modified_context=kept or None)

    def _note(self, event: AuditEvent, result: GateResult, **data: object) -> None:
        self.notes.append((event, {"gate": result.gate_name, "code": result.code, **data}))


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value) if value is not None else ""


def _mark(text: str) -> str:
    """Keyed hash of a text: proves later that this was the text, but cannot be guessed from the log."""
    return salted_hmac("silas.gates.mutation", text, algorithm="sha256").hexdigest()[:32]


def _applies(gate: GateSpec, trigger: str, context: Mapping[str, object]) -> bool:
    if gate.on != trigger:
        return False
    if trigger in (GateTrigger.ON_TOOL_CALL, GateTrigger.ON_CONTENT):
        return not gate.tools or context.get("tool_name") in gate.tools
    return trigger != GateTrigger.AFTER_STEP or gate.after_step == context.get("step")
