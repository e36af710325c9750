"""Programs of Debian's that some tests run: without them a test is skipped, or fails where they are required."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

# Servers that need root or may refuse to start, and programs that only have to be there.
SERVERS, PROGRAMS = "SILAS_REQUIRE_SERVERS", "SILAS_REQUIRE_PROGRAMS"


def do_without(reason: str, required: str) -> NoReturn:
    """Skip the test for this reason; fail it where the variable named `required` is 1."""
    if os.environ.get(required) == "1":
        raise AssertionError(reason)
    pytest.skip(reason)
