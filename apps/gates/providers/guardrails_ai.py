"""The detectors of `custom` as validators of guardrails-ai."""

from __future__ import annotations

from apps.gates import guardrails
from apps.gates.enums import GateAction, GateCode, GateProvider
from apps.gates.providers.base import Request, result_of
from apps.gates.providers.custom import Detector, run_detector
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.settings_checks import Problems
from kernel.language import gettext_lazy
from kernel.stored_texts import stored_text

NOT_INSTALLED = gettext_lazy(
    "guardrails-ai is not installed: run make guardrails, or use custom, which runs the same detectors without it"
)


class GuardrailsDetector(Detector):
    """The same detectors under guardrails-ai; blocks if the library is not installed."""

    kind = GateProvider.GUARDRAILS_AI
    label = gettext_lazy("A detector (guardrails-ai)")
    is_slow = True

    def problems(self, gate: GateSpec) -> Problems:
        yield from super().problems(gate)
        if not guardrails.is_installed():
            yield "provider", str(NOT_INSTALLED)

    def evaluate(self, request: Request) -> GateResult:
        if not guardrails.is_installed():
            reason = stored_text("Unknown check: {provider}").format(provider=request.gate.provider)
            return result_of(request.gate, GateAction.BLOCK, GateCode.PROVIDER_MISSING, reason)
        return run_detector(request, guardrails.validate)
