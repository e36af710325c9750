"""How do our detectors run under guardrails-ai? The one place that imports that library, and only when a gate asks.

It comes with requirements/guardrails.txt and not by itself. It would send usage data: metrics, tracing, its hub and
remote inference are off before anything of it is made, and nothing here opens a connection. Called by `providers`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Any

from apps.gates.detectors import catalogue
from apps.gates.detectors.findings import Detection
from apps.gates.detectors.normalise import Spellings

# Read by the library and what it brings along while they are imported.
_QUIET = {
    "OTEL_SDK_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
}
_importing = Lock()


def is_installed() -> bool:
    return importlib.util.find_spec("guardrails") is not None


def validate(name: str, text: str, config: Mapping[str, Any], spellings: Spellings) -> tuple[bool, Detection]:
    """Does the text fail, and what was found? Raises `Unusable` for settings that no detector has."""
    least = catalogue.threshold(name, config)
    found: list[Detection] = []

    def ask(value: str) -> Detection:
        found.append(catalogue.detect(name, value, config, spellings))
        return found[-1]

    validator = _validator()(ask=ask, least=least)
    outcome = _library().Guard().use(validator).validate(text)
    if not found:  # the validator threw, and the library took it for an answer
        raise RuntimeError("the validator did not run")
    return not outcome.validation_passed, found[-1]


@cache
def _library() -> Any:
    # Somebody else's setting of the same name comes back afterwards.
    with _importing:
        before = {name: os.environ.get(name) for name in _QUIET}
        os.environ.update(_QUIET)
        try:
            library = importlib.import_module("guardrails")
        finally:
            _restore(before)
        _silence(library)
        return library


def _silence(library: Any) -> None:
    """Every guard reads the settings file again, and without one metrics are on: the reading itself is replaced. The
    hub's one sender is put in place without exporter, so that there is nothing that could send."""
    settings = importlib.import_module("guardrails.classes.rc").RC
    settings.load = classmethod(lambda cls, logger=None: cls(enable_metrics=False, use_remote_inferencing=False))
    library.settings.rc = settings.load()
    library.settings.disable_tracing = True
    sender = importlib.import_module("guardrails.utils.hub_telemetry_utils").HubTelemetry
    sender._instance = object.__new__(sender)


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@cache
def _validator() -> Any:
    """One validator for all our detectors, registered under `silas/text`."""
    library = _library()
    results = importlib.import_module("guardrails.validator_base")

    base: Any = library.Validator  # the library is absent when types are checked

    class SilasText(base):  # type: ignore[misc] # a class of an absent library is Any, which strict mypy won't subclass
        def __init__(self, *, ask: Callable[[str], Detection], least: float) -> None:
            super().__init__(on_fail="noop", use_local=True)
            self._ask, self._least = ask, least

        def _validate(self, value: Any, metadata: dict[str, Any]) -> Any:
            found = self._ask(value)
            if found.score < self._least:
                return results.PassResult()
            return results.FailResult(error_message=", ".join(found.kinds), fix_value=found.redacted)

    return library.register_validator(name="silas/text", data_type="string")(SilasText)
