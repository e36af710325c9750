"""A model's judgement of a text. Only a score and flags of its answer are passed on, never its text (spec 5.5.3)."""

from __future__ import annotations

import logging

from apps.gates import rules
from apps.gates.enums import GateAction, GateCode, GateLane, GateProvider
from apps.gates.providers.base import Provider, Request, extract_value, result_of
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.settings_checks import Problems, check_names, check_whole
from kernel.language import gettext, gettext_lazy
from kernel.stored_texts import stored_text
from llm.judge import Opinion, Question, Ruling
from llm.models import is_known

LONGEST_POLICY, MAX_SECONDS = 2000, 20
_SETTINGS = frozenset({"policy", "model", "seconds", "max_tokens"})
_REASONS = {
    GateAction.CONTINUE: "",
    GateAction.BLOCK: stored_text("This is against a company policy"),
    GateAction.REQUIRE_APPROVAL: stored_text("This needs approval"),
}
_log = logging.getLogger(__name__)


class Model(Provider):
    """No answer, a late one or prose means no opinion in the quality lane and a block in the policy lane."""

    kind = GateProvider.LLM
    label = gettext_lazy("A model")
    is_slow = True
    asks_model = True

    def problems(self, gate: GateSpec) -> Problems:
        yield from check_names(gate.config, _SETTINGS)
        policy, model = gate.config.get("policy"), gate.config.get("model")
        if not isinstance(policy, str) or not policy.strip() or len(policy) > LONGEST_POLICY:
            yield (
                "config",
                gettext("policy must describe what the model judges, in up to {count} characters").format(
                    count=LONGEST_POLICY
                ),
            )
        if model is not None and not (isinstance(model, str) and is_known(model)):
            yield "config", gettext("model must be a model of this installation, such as openai:NAME")
        if "seconds" in gate.config:
            yield from check_whole(gate.config, "seconds", least=1, most=MAX_SECONDS)
        if "max_tokens" in gate.config:
            yield from check_whole(gate.config, "max_tokens", least=50, most=1000)

    def evaluate(self, request: Request) -> GateResult:
        gate = request.gate
        try:
            answer = _ask_model(request)
        except Exception as error:  # noqa: BLE001 - every failure of a model is handled alike
            _log.warning("gate_model_failed gate=%s error=%s", gate.name, type(error).__name__)
            return _no_opinion(gate)
        if isinstance(answer, Ruling):
            action = GateAction(answer.action)
            code = GateCode.PASSED if action == GateAction.CONTINUE else GateCode.LLM_SAID
            return result_of(gate, action, code, _REASONS[action])
        action = GateAction(answer.action or GateAction.CONTINUE)
        return result_of(gate, action, GateCode.PASSED, score=answer.score, flags=tuple(answer.flags))


def _ask_model(request: Request) -> Opinion | Ruling:
    gate, text = request.gate, extract_value(request.gate, request.context)
    if request.ask is None:
        raise LookupError("no model")
    # A model judges only what it reads whole: a cut text could hide its end.
    if not isinstance(text, str) or len(text) > rules.MAX_TEXT:
        raise ValueError("no text that could be read as a whole")
    binding = gate.lane == GateLane.POLICY
    known = {name: gate.config[name] for name in ("seconds", "max_tokens", "model") if gate.config.get(name)}
    answer = request.ask(Question(str(gate.config["policy"]), text, binding=binding, **known))
    # An opinion must not decide where a ruling was asked for.
    if not isinstance(answer, Ruling if binding else Opinion):
        raise TypeError("an answer to another question")
    return answer


def _no_opinion(gate: GateSpec) -> GateResult:
    action = GateAction.BLOCK if gate.lane == GateLane.POLICY else GateAction.CONTINUE
    reason = stored_text("This couldn't be checked") if action == GateAction.BLOCK else ""
    return result_of(gate, action, GateCode.LLM_ERROR, reason, flags=(GateCode.LLM_ERROR.value,))
