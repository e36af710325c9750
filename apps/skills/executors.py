"""Executors run code that a model wrote and a person approved, word for word (spec 9.2). Pure.

A tool of a skill names one in the place of a script. Its call is an acting one like any other, so that the guard, the
signed approval and the sandbox apply to it, and no standing approval or batch ever covers it. No shell reads a command:
it is a list of arguments.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from apps.skills.enums import Executor

MAX_CODE, MAX_WORDS, MAX_WORD = 10_000, 20, 200
ARGS: Mapping[Executor, Mapping[str, object]] = {
    Executor.PYTHON: {
        "type": "object",
        "properties": {"code": {"type": "string", "minLength": 1, "maxLength": MAX_CODE, "title": "Python code"}},
        "required": ["code"],
        "additionalProperties": False,
    },
    Executor.SHELL: {
        "type": "object",
        "properties": {
            "command": {
                "type": "array",
                "items": {"type": "string", "maxLength": MAX_WORD},
                "minItems": 1,
                "maxItems": MAX_WORDS,
                "title": "command and its arguments",
            }
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}


def code_of(executor: str, args: Mapping[str, Any]) -> str:
    """Return exactly what runs, as a card shows it: the code, or the command with its arguments quoted."""
    return str(args["code"]) if executor == Executor.PYTHON else shlex.join(args["command"])


def command_line(executor: str, args: Mapping[str, Any]) -> list[str]:
    """Return the command line. Python's code is mounted as `files` says."""
    return ["python3", "-I", "-S", "/sandbox/code/main.py"] if executor == Executor.PYTHON else list(args["command"])


def files(executor: str, args: Mapping[str, Any]) -> dict[str, Mapping[str, bytes]]:
    """Return the mounts that hold the code."""
    return {"code": {"main.py": str(args["code"]).encode()}} if executor == Executor.PYTHON else {}
