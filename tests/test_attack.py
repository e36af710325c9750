"""The short form of every attack of `make attack`, each in a process of its own with servers of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attack.__main__ import MODULES

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_attack_finds_nothing(name: str) -> None:
    argv = [sys.executable, "-m", "attack", "--short", name]
    report = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert report.returncode == 0, report.stdout + report.stderr[-4000:]
