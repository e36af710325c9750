"""guardrails-ai for tests: the real one, installed once a machine as `make guardrails` does, and a stand-in."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from apps.gates import guardrails
from tests.architecture.source import ROOT
from tests.prepared import place_of

_FAKE = ROOT / "tests" / "fakes" / "libraries"
# What the detectors import, which the real library's folder holds too (requirements/guardrails.in).
_IMPORTED = ("stdnum", "phonenumbers")


def _make_stand_in() -> Path:
    """A folder with the fake library and what the detectors import, made once a machine."""
    versions = f"{version('python-stdnum')}-{version('phonenumbers')}"
    content = b"".join(path.read_bytes() for path in sorted(_FAKE.rglob("*.py")))
    folder = place_of(f"stand-in-{versions}-{hashlib.sha256(content).hexdigest()[:16]}") / "libraries"
    if not folder.exists():
        made = Path(tempfile.mkdtemp(dir=folder.parent))
        shutil.copytree(_FAKE, made, dirs_exist_ok=True)
        for name in _IMPORTED:
            spec = find_spec(name)
            assert spec
            assert spec.origin
            unread = shutil.ignore_patterns("geodata", "carrierdata", "tzdata")
            shutil.copytree(Path(spec.origin).parent, made / name, ignore=unread)
        made.chmod(0o755)
        with suppress(OSError):  # another process was first
            made.rename(folder)
    return folder


STAND_IN = _make_stand_in()


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
