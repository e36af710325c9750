"""A spec that could smuggle something cannot be made."""

import pytest

from kernel.errors import SilasError
from sandbox import SandboxSpec


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": []},
        {"argv": [""]},
        {"argv": "rm -rf /"},
        {"argv": ["a\0b"]},
        {"argv": ["sh", "-c", "echo"]},
        {"argv": ["/bin/bash", "-ec", "echo"]},
        {"work": {"../x": b""}},
        {"work": {"/x": b""}},
        {"work": {"a//b": b""}},
        {"work": {"": b""}},
        {"read_only": {"work": {}}},
        {"read_only": {"a/b": {}}},
        {"read_only": {"ok": {"../x": b""}}},
        {"hidden": ["data/checks"]},
        {"hidden": ["data/../checks"], "read_only": {"data": {}}},
        {"hidden": ["data"], "read_only": {"data": {}}},
        {"env": {"LD_PRELOAD": "x"}},
        {"env": {"PYTHONPATH": "x"}},
        {"env": {"PATH": "x"}},
        {"env": {"A=B": "x"}},
        {"env": {"A": "x\0y"}},
        {"timeout_seconds": 0},
        {"memory_mb": -1},
        {"timeout_seconds": float("nan")},
        {"lasting": True, "secret": b"{}"},
    ],
)
def test_spec_that_smuggles_something_is_refused(fields):
    with pytest.raises(SilasError) as refused:
        SandboxSpec(**{"argv": ["true"], **fields})
    assert refused.value.code == "sandbox_spec_invalid"


def test_spec_shell_that_runs_a_file_is_allowed():
    assert SandboxSpec(["sh", "script.sh"]).argv == ["sh", "script.sh"]
