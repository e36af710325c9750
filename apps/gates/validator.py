"""The program that runs guardrails-ai: reads one request per line, answers with one line.

It is never imported. `guardrails` runs it in a sandbox with the library and this package only; `tools/guardrails` runs
it once without, to compile the library. The library would send usage data, so metrics, tracing, its hub and remote
inference are disabled before it is used, and every connection is refused."""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from apps.gates.detectors.findings import Detection

READY = "ready"
# Read by the library and its dependencies while they are imported.
_QUIET = {
    "OTEL_SDK_DISABLED": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
}
_REACHING = frozenset(
    ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg")
)


def main(library: str) -> None:
    """Report readiness, then answer until the input ends."""
    # Before the library is loaded: what it prints must not stand between the answers.
    answers = _own_output()
    # A hook of the interpreter, which no code of the library can take out again.
    sys.addaudithook(_refuse)
    os.environ.update(_QUIET)
    sys.path.insert(0, library)
    _register_package(Path(__file__).parent)
    judge = Judge()
    _say(answers, READY)
    os.dup2(1, 2)  # from here on, messages of the library could contain the texts
    for line in sys.stdin.buffer:
        _say(answers, json.dumps(judge.answer(json.loads(line))))


class Judge:
    """One guard with one validator, which runs the detector that the request names."""

    def __init__(self) -> None:
        self._catalogue = importlib.import_module("apps.gates.detectors.catalogue")
        self._spellings = importlib.import_module("apps.gates.detectors.normalise").Spellings
        self._read: tuple[str, object] = ("", self._spellings())
        self._asked: Callable[[str], tuple[Detection, float]] | None = None
        self._found: Detection | None = None
        library = importlib.import_module("guardrails")
        _silence(library)
        self._guard = library.Guard(history_max_length=1).use(self._validator(library))

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Whether the text fails and what was found; or the name of an exception."""
        try:
            failed, found = self._judged(question["name"], _text(question["text"]), question["config"])
        except Exception as error:  # noqa: BLE001 - the caller blocks, and the next request is answered
            return {"id": question["id"], "error": type(error).__name__}
        redacted = None if found.redacted is None else _coded(found.redacted)
        reply = {"failed": failed, "score": found.score, "spans": found.spans, "redacted": redacted}
        return {"id": question["id"], **reply}

    def _judged(self, name: str, text: str, config: Mapping[str, object]) -> tuple[bool, Detection]:
        least = self._catalogue.threshold(name, config)
        if self._read[0] != text:  # gates of one run ask about one text, one after the other
            self._read = (text, self._spellings())
        self._found = None
        self._asked = lambda value: (self._catalogue.detect(name, value, config, self._read[1]), least)
        outcome = self._guard.validate(text)
        if self._found is None:  # the validator raised, and the library treated it as an answer
            raise RuntimeError("the validator did not run")
        return not outcome.validation_passed, self._found

    def _passes(self, value: Any) -> bool:
        assert self._asked is not None
        self._found, least = self._asked(value)
        return self._found.score < least

    def _validator(self, library: Any) -> Any:
        """One validator for all our detectors, registered under `silas/text`."""
        results = importlib.import_module("guardrails.validator_base")
        passes = self._passes
        base: Any = library.Validator  # the library is absent when types are checked

        class SilasText(base):  # type: ignore[misc] # a class of an absent library is Any, which strict mypy won't subclass
            def _validate(self, value: object, metadata: dict[str, object]) -> Any:
                return results.PassResult() if passes(value) else results.FailResult(error_message="found")

        registered = library.register_validator(name="silas/text", data_type="string")(SilasText)
        return registered(on_fail="noop", use_local=True)


def _silence(library: Any) -> None:
    """Disable telemetry. Every guard reads the settings file again, and metrics are on without one, so the loader
    itself is replaced. The hub's only sender is installed without an exporter."""
    settings = importlib.import_module("guardrails.classes.rc").RC
    settings.load = classmethod(lambda cls, logger=None: cls(enable_metrics=False, use_remote_inferencing=False))
    library.settings.rc = settings.load()
    library.settings.disable_tracing = True
    sender = importlib.import_module("guardrails.utils.hub_telemetry_utils").HubTelemetry
    sender._instance = object.__new__(sender)


def _refuse(event: str, args: tuple[object, ...]) -> None:
    if event in _REACHING:
        raise PermissionError("connections are refused")


def _register_package(folder: Path) -> None:
    """Register this folder as `apps.gates`, wherever it is, without importing its parents."""
    for name, place in (("apps", folder.parent), ("apps.gates", folder)):
        package = ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package


def _own_output() -> BinaryIO:
    """Keep stdout for answers, and discard everything else that is printed."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


def _say(answers: BinaryIO, line: str) -> None:
    answers.write(line.encode() + b"\n")
    answers.flush()


def _text(coded: str) -> str:
    """Base64, because JSON would join two adjacent lone surrogates."""
    return base64.b64decode(coded).decode("utf-8", "surrogatepass")


def _coded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


if __name__ == "__main__":
    main(sys.argv[1])
