"""A detector on a text (contract silas 2)."""

from __future__ import annotations

from apps.gates.detectors.catalogue import InvalidSetting, detect, is_fixing, threshold
from apps.gates.enums import GateProvider
from apps.gates.providers.base import Provider, Request, changes_of, extract_value, result_of
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.settings_checks import Problems
from apps.gates.text_checks import Judge, judge_text
from kernel.language import gettext_lazy


class Detector(Provider):
    """`check` names the detector, `config` its settings."""

    kind = GateProvider.CUSTOM
    label = gettext_lazy("A detector")

    def problems(self, gate: GateSpec) -> Problems:
        try:
            is_fixing(gate.config)
            # On an empty text: what is wrong with the settings shows here, and not when a visitor writes.
            detect(gate.check or "", "", gate.config)
            threshold(gate.check or "", gate.config)
        except InvalidSetting as wrong:
            yield "check", str(wrong)

    def evaluate(self, request: Request) -> GateResult:
        return run_detector(request, None)


def run_detector(request: Request, judge: Judge | None) -> GateResult:
    gate = request.gate
    answer = judge_text(
        gate.check, extract_value(gate, request.context), gate.config, judge=judge, spellings=request.spellings
    )
    changes = None if answer.changed is None else changes_of(gate, answer.changed)
    return result_of(gate, answer.action, answer.code, answer.reason, modified_context=changes)
