"""The child process that reads one PDF: the PDF on standard input, JSON on standard output.

It runs by its path, imports nothing of ours and gives itself limits first: `parsing.pdf` starts it and no one else.
Arguments: memory in bytes, processor time in seconds, pages, characters.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from typing import Any


def main() -> None:
    memory, seconds, pages, characters = (int(word) for word in sys.argv[1:])
    _limit(resource.RLIMIT_AS, memory)
    _limit(resource.RLIMIT_CPU, seconds)
    try:
        answer = _read(io.BytesIO(sys.stdin.buffer.read()), pages, characters)
    except MemoryError:
        answer = _problem("too_large", "The PDF needs too much memory.")
    except Exception as error:  # noqa: BLE001  (pypdf raises whatever a broken file leads it to)
        answer = _problem("broken_pdf", f"The PDF is damaged ({type(error).__name__}).")
    json.dump(answer, sys.stdout)


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _read(file: io.BytesIO, most_pages: int, most_characters: int) -> dict[str, Any]:
    from pypdf import PdfReader

    reader = PdfReader(file, strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        return _problem("encrypted_pdf", "The PDF is protected by a password.")
    if len(reader.pages) > most_pages:
        return _problem("too_large", f"The PDF has more than {most_pages} pages.")
    pages: list[str] = []
    room = most_characters
    for page in reader.pages:
        pages.append(page.extract_text())
        room -= len(pages[-1])
        if room < 0:
            return _problem("too_large", f"The PDF holds more than {most_characters} characters.")
    title = reader.metadata.title if reader.metadata else ""
    return {"title": str(title or ""), "pages": pages}


def _problem(code: str, message: str) -> dict[str, Any]:
    return {"problem": code, "message": message}


if __name__ == "__main__":
    main()
