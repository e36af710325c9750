"""As much of guardrails-ai 0.11 as our validator touches, with its habit of reading its settings again for each guard
and of telling its hub about each of them. It starts at once where the real one takes seconds."""

from types import SimpleNamespace

from guardrails.classes.rc import RC
from guardrails.utils.hub_telemetry_utils import HubTelemetry

settings = SimpleNamespace(rc=RC.load(), disable_tracing=None)
registered = {}


def register_validator(*, name, data_type):
    return lambda kind: registered.setdefault(name, kind)


class Validator:
    def __init__(self, *, on_fail, use_local):
        if settings.rc.enable_metrics:
            HubTelemetry(enabled=True)


class Guard:
    def __init__(self, *, history_max_length):
        settings.rc = RC.load()
        hub = HubTelemetry()
        hub._enabled = settings.rc.enable_metrics
        if hub._enabled and hub._tracer:
            hub._tracer("guard made")

    def use(self, validator):
        self._validator = validator
        return self

    def validate(self, text):
        return SimpleNamespace(validation_passed=self._validator._validate(text, {}).passed)
