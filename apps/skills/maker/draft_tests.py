"""Run a draft's own tests, in a sandbox without a network, with its example rows.

The output was written by the draft: counts are read from the test runner's words, the rest is shown as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from apps.skills import script_library
from kernel.canonical import canonical_bytes
from sandbox import SandboxResult, SandboxSpec, run

EXAMPLES = "assets/examples.json"
_SECONDS, _SHOWN = 60, 6000
_BOOK = re.compile(r"[a-z][a-z0-9_]{0,59}")


def run_tests(files: Mapping[str, str]) -> dict[str, object]:
    """Return `{passed, count, failed, output, reason}`. Blocking, outside of any transaction. Raises
    `sandbox_unavailable`."""
    outcome = run(
        SandboxSpec(
            ["python3", "-I", "-S", "-m", "unittest", "discover", "-s", "/sandbox/skill/tests", "-v"],
            read_only={
                **script_library.mounts({path: text.encode() for path, text in files.items()}),
                "records": _records(files),
            },
            timeout_seconds=_SECONDS,
        )
    )
    return _parse_result(outcome)


def _records(files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the example rows by book; what cannot be read is no row."""
    try:
        content = json.loads(files.get(EXAMPLES, "{}"))
        books = content.get("records", {}) if isinstance(content, dict) else {}
        examples = {book: rows for book, rows in books.items() if _BOOK.fullmatch(book) and isinstance(rows, list)}
    except (ValueError, RecursionError, AttributeError):
        examples = {}
    return {f"{book}.json": canonical_bytes(rows) for book, rows in examples.items()}


def _parse_result(outcome: SandboxResult) -> dict[str, object]:
    output = outcome.stderr
    ran = re.search(r"^Ran (\d+) tests?", output, re.M)
    count = int(ran[1]) if ran else 0
    return {
        "passed": outcome.ok and count > 0,
        "count": count,
        "failed": re.findall(r"^(?:FAIL|ERROR): (.{1,200})", output, re.M)[:20],
        "output": output[-_SHOWN:].replace("\0", " "),
        "reason": outcome.reason,
    }
