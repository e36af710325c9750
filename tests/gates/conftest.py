"""guardrails-ai for tests: the real one, installed once a machine as `make guardrails` does, and a stand-in."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.gates import guardrails
from tests.architecture.source import ROOT
from tests.prepared import place_of

STAND_IN = ROOT / "tests" / "fakes" / "libraries"


@pytest.fixture(scope="session")
def real_library() -> Path:
    wanted = (ROOT / "requirements" / "guardrails.txt").read_bytes()
    folder = place_of(f"guardrails-{hashlib.sha256(wanted).hexdigest()[:16]}") / "guardrails"
    subprocess.run(["tools/guardrails", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def started(real_library: Path) -> Iterator[guardrails.Program]:
    """One program of the real library for all tests of this process."""
    program = guardrails.Program()
    yield program
    program.end()


@pytest.fixture
def real(real_library: Path, started: guardrails.Program, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.GUARDRAILS_DIR = real_library
    monkeypatch.setattr(guardrails, "_program", started)


@pytest.fixture
def stand_in(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[guardrails.Program]:
    settings.GUARDRAILS_DIR = STAND_IN
    program = guardrails.Program()
    monkeypatch.setattr(guardrails, "_program", program)
    yield program
    program.end()
