"""Parse hostile bytes (a document, a page, an archive) in the sandbox, and return plain data of a bounded size.

A reader is a function of ours that takes the bytes and returns `(answer, blob)`: JSON-compatible data, and bytes. It
runs without network, secrets, host files or environment, with the libraries that it may import. Its result may be
anything an attacker wrote: the caller validates it. Blocking; never call it in a transaction.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sysconfig
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from sandbox.runner import run
from sandbox.spec import SandboxResult, SandboxSpec

# A reader may use a whole processor, so the number in one process is limited; later callers wait, then get an error.
MAX_CONCURRENT, WAIT_SECONDS = 2, 60.0
_SPARE_MB = 4
_EXHAUSTED = {"timeout", "cpu_limit", "memory_limit", "disk_limit", "output_limit", "process_limit", "artifact_limit"}
_MAIN = """
import sys
sys.path[:0] = ["/sandbox/reader", "/sandbox/lib"]
import importlib, json
with open("asked.json") as asked, open("data", "rb") as data:
    asked, data = json.load(asked), data.read()
read = getattr(importlib.import_module(asked["module"]), asked["function"])
try:
    answer, blob = read(data, **asked["named"])
except MemoryError:
    sys.exit(77)
with open("/sandbox/out/answer.json", "w") as out:
    json.dump(answer, out)
with open("/sandbox/out/blob", "wb") as out:
    out.write(blob)
"""
_NO_MEMORY = 77
_slots = threading.BoundedSemaphore(MAX_CONCURRENT)


class ReaderFailed(Exception):
    """`code`: `too_demanding` if it needs more time, memory or room than it may have, else `failed`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Reader:
    """`function` of `module`. `brings`: our packages and modules that it imports, itself included, without Django.

    `most_bytes` limits answer and blob together.
    """

    module: str
    function: str
    brings: tuple[str, ...]
    seconds: int = 30
    memory_mb: int = 512
    most_bytes: int = 16_000_000


@dataclass(frozen=True)
class ReaderResult:
    answer: Any
    blob: bytes


def run_reader(reader: Reader, data: bytes, **named: object) -> ReaderResult:
    """Raises `ReaderFailed`, and `SilasError` 503: `sandbox_unavailable`, or `reader_busy` if too many wait."""
    request = {"module": reader.module, "function": reader.function, "named": named}
    spec = SandboxSpec(
        ["python3", "-I", "-S", "-B", "-c", _MAIN],
        work={"asked.json": json.dumps(request).encode(), "data": data},
        read_only={"reader": _sources(reader.brings), "lib": Path(sysconfig.get_path("purelib"))},
        timeout_seconds=reader.seconds,
        cpu_seconds=reader.seconds,
        memory_mb=reader.memory_mb,
        disk_mb=(len(data) + reader.most_bytes) // 1_000_000 + _SPARE_MB,
        processes=8,
        artifact_files=2,
    )
    if not _slots.acquire(timeout=WAIT_SECONDS):
        message = "Too many files are being read right now. Please try again in a moment."
        raise SilasError(ErrorCode.READER_BUSY, message, extra={"retry_after": 60})
    try:
        outcome = run(spec)
    finally:
        _slots.release()
    return _reading(outcome, reader.most_bytes)


def _reading(outcome: SandboxResult, most_bytes: int) -> ReaderResult:
    if outcome.reason in _EXHAUSTED or outcome.exit_code == _NO_MEMORY:
        raise ReaderFailed("too_demanding")
    answer, blob = outcome.artifacts.get("answer.json"), outcome.artifacts.get("blob", b"")
    if not outcome.ok or answer is None:
        raise ReaderFailed("failed")
    if len(answer) + len(blob) > most_bytes:
        raise ReaderFailed("too_demanding")
    try:
        return ReaderResult(json.loads(answer), blob)
    except (ValueError, RecursionError):
        # An attacker may have taken the reader over: its answer may be no JSON, or nested without end.
        raise ReaderFailed("failed") from None


@functools.cache
def _sources(names: Sequence[str]) -> dict[str, bytes]:
    """Sources of these modules (packages with everything in them) and of their parent packages."""
    files: dict[str, bytes] = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise LookupError(name)
        parts, home = name.split("."), Path(spec.origin)
        for depth in range(1, len(parts)):
            files.setdefault("/".join([*parts[:depth], "__init__.py"]), b"")
        if spec.submodule_search_locations is None:
            files["/".join(parts) + ".py"] = home.read_bytes()
        else:
            for path in home.parent.rglob("*.py"):
                files["/".join([*parts, *path.relative_to(home.parent).parts])] = path.read_bytes()
    return files
