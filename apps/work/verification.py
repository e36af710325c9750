"""Verify work by commands in a sandbox of their own, which the agent can neither see nor reach (spec 5.3).

Each check gets a fresh sandbox with the task's artifacts and freshly exported records read-only, an empty environment
and no network; one that asks for network reaches only the places that the operator lists. Its stdout and exit code are
compared with its expectation. Blocking; no database; never called inside a scope.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from django.conf import settings

from apps.gates.rules import is_permitted_path, meets
from apps.work.schemas import CheckResult, VerificationCheck, VerificationReport
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.unicode_safety import replace_unstorable
from sandbox import SandboxResult, SandboxSpec, run
from sandbox.spec import Mount

OUTPUT_CHARS = 1000


def run_checks(checks: Iterable[VerificationCheck], *, mounts: Mapping[str, Mount]) -> VerificationReport:
    """Run every check in order, each in its own sandbox; `mounts` appear there as `/sandbox/<name>`, read-only."""
    return VerificationReport(tuple(run_check(check, mounts=mounts) for check in checks))


def run_check(check: VerificationCheck, *, mounts: Mapping[str, Mount]) -> CheckResult:
    try:
        result = run(_sandbox(check, mounts))
    except SilasError as refusal:
        # A check that cannot run has not passed (fail closed).
        return CheckResult(check.name, False, refusal.message, "", None)
    # `reason` is set when the sandbox stopped the command; then its output proves nothing.
    passed = not result.reason and meets(
        check.expect, output=result.stdout, exit_code=result.exit_code, file_exists=_file_exists(check, result, mounts)
    )
    # A command may print any bytes, and PostgreSQL stores no NUL.
    output = replace_unstorable(result.stdout[:OUTPUT_CHARS])
    return CheckResult(check.name, passed, _reason(check, result, passed), output, result.exit_code)


def _sandbox(check: VerificationCheck, mounts: Mapping[str, Mount]) -> SandboxSpec:
    places = tuple(settings.CHECK_PLACES) if check.network else ()
    if check.network and not places:
        raise SilasError(ErrorCode.NO_PLACES)
    return SandboxSpec(
        shlex.split(check.run), read_only=mounts, egress=places, timeout_seconds=check.timeout, disk_mb=16
    )


def _file_exists(check: VerificationCheck, result: SandboxResult, mounts: Mapping[str, Mount]) -> bool:
    """Look only at what the check itself left under `out/`, or at a mount given as contents; nothing else is probed."""
    path = check.expect.file_exists
    if path is None or not is_permitted_path(path):
        return False
    root, *rest = PurePosixPath(path.removeprefix("/sandbox/")).parts or ("",)
    files = result.artifacts if root == "out" else mounts.get(root)
    return isinstance(files, Mapping) and "/".join(rest) in files


def _reason(check: VerificationCheck, result: SandboxResult, passed: bool) -> str:
    if passed:
        return "passed"
    if result.reason == "timeout":
        return f"Timeout after {check.timeout}s"
    if result.reason:
        return f"stopped: {result.reason}"
    expected = check.expect.model_dump(exclude_none=True)
    return f"expected {expected}, got exit code {result.exit_code}"
