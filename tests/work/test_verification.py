"""The independent checks: what they see, what they compare, and what they cannot reach."""

from __future__ import annotations

from typing import Any

import pytest

from apps.work.schemas import CheckResult, VerificationCheck
from apps.work.verification import run_check, run_checks

ARTIFACTS = {"artifacts": {"letter.txt": b"hello\n"}, "records": {"policies.json": b"{}"}}


def check(run: str, timeout: int = 20, **expect: Any) -> CheckResult:
    wanted = VerificationCheck(name="c", run=run, expect=expect, timeout=timeout)
    return run_check(wanted, mounts=ARTIFACTS)


def python(code: str, timeout: int = 20, **expect: Any) -> CheckResult:
    return check(f"python3 -c '{code}'", timeout, **expect)


@pytest.mark.parametrize(
    ("code", "expect"),
    [
        ('print("done")', {"equals": "done"}),
        ('print("all done here")', {"contains": "done"}),
        ('print("order 17 done")', {"regex": r"order \d+"}),
        ("print(3.5)", {"output_lt": 4}),
        ("print(3.5)", {"output_gt": 3}),
        ("raise SystemExit(0)", {"exit_code": 0}),
        ("raise SystemExit(3)", {"exit_code": 3}),
        ('print("x")', {"not_empty": True}),
        ("pass", {"file_exists": "artifacts/letter.txt"}),
        ("pass", {"file_exists": "/sandbox/records/policies.json"}),
        ('open("/sandbox/out/report", "w").write("x")', {"file_exists": "out/report"}),
        ('print(open("/sandbox/artifacts/letter.txt").read(), end="")', {"equals": "hello"}),
    ],
)
def test_check_that_meets_its_expectation_passes(code: str, expect: dict[str, Any]) -> None:
    assert python(code, **expect).passed


@pytest.mark.parametrize(
    ("code", "expect"),
    [
        ('print("done\\n")', {"equals": "done"}),
        ('import sys; print("done", file=sys.stderr)', {"contains": "done"}),
        ("print(4)", {"output_lt": 4}),
        ('print("four")', {"output_lt": 4}),
        ("raise SystemExit(1)", {"exit_code": 0}),
        ("pass", {"not_empty": True}),
        ("pass", {"file_exists": "artifacts/other.txt"}),
        ("pass", {"file_exists": "artifacts/../artifacts/letter.txt"}),
        ("pass", {"file_exists": "/etc/hostname"}),
        ("pass", {"file_exists": "work/anything"}),
    ],
)
def test_check_that_misses_its_expectation_fails(code: str, expect: dict[str, Any]) -> None:
    assert not python(code, **expect).passed


@pytest.mark.parametrize(
    "code",
    [
        'open("/sandbox/artifacts/letter.txt", "w")',
        'open("/sandbox/records/policies.json", "a")',
        'open("/etc/passwd")',
        'import socket; socket.create_connection(("127.0.0.1", 80), 2)',
        'import os; os.environ["SILAS_SECRETS_KEY"]',
    ],
)
def test_check_cannot_reach_beyond_its_sandbox(code: str) -> None:
    assert not python(code, exit_code=0).passed


def test_check_that_hangs_says_so() -> None:
    result = python("while True: pass", timeout=1, exit_code=0)
    assert result.passed is False
    assert result.reason == "Timeout after 1s"


def test_check_is_not_run_by_a_shell() -> None:
    assert not check("echo hello | grep nothing-at-all; true", equals="hello").passed


def test_check_with_shell_string_is_refused_with_a_reason() -> None:
    assert "shell" in check("sh -c 'true'", exit_code=0).reason


def test_check_output_is_cut_to_a_thousand_characters() -> None:
    assert len(python('print("x" * 5000)', not_empty=True).output) == 1000


def test_report_lists_failed_checks_in_order() -> None:
    wanted = [
        VerificationCheck(name=name, run=f"python3 -c 'raise SystemExit({code})'", expect={"exit_code": 0})
        for name, code in (("a", 1), ("b", 0), ("c", 2))
    ]
    assert [result.name for result in run_checks(wanted, mounts={}).failed] == ["a", "c"]


def test_report_without_checks_has_passed() -> None:
    assert run_checks([], mounts={}).all_passed
