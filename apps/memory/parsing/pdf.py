"""What is written in a PDF? Read in a child process with little time and memory, because hostile PDFs hang or swell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from apps.memory.parsing.shapes import ParsedDocument, ProblemCode, Unreadable
from apps.memory.parsing.text import clean, name_to_title, one_line

SECONDS = 120
MEMORY_BYTES = 1_500_000_000
PAGES = 5000
CHARACTERS = 5_000_000

_CHILD = Path(__file__).with_name("pdf_child.py")


def parse_pdf(data: bytes, name: str) -> ParsedDocument:
    """The text of all pages, form feeds between them. Raises `Unreadable` with the reason."""
    answer = _asked(data)
    pages = (clean(page).replace("\f", "\n").strip() for page in answer["pages"])
    return ParsedDocument(title=one_line(answer["title"]) or name_to_title(name), text="\f".join(pages))


def _asked(data: bytes) -> dict[str, Any]:
    limits = [str(limit) for limit in (MEMORY_BYTES, SECONDS, PAGES, CHARACTERS)]
    argv = [sys.executable, "-I", str(_CHILD), *limits]
    try:
        child = subprocess.run(argv, input=data, capture_output=True, timeout=SECONDS, env={}, check=False)
        answer: dict[str, Any] = json.loads(child.stdout)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(ProblemCode.BROKEN_PDF, f"The PDF took longer than {SECONDS} s to read.") from error
    except ValueError as error:
        raise Unreadable(ProblemCode.BROKEN_PDF, "The PDF could not be read.") from error
    if "problem" in answer:
        raise Unreadable(ProblemCode(answer["problem"]), answer["message"])
    return answer
