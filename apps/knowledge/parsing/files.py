"""Choose the parser of a file by its suffix, and refuse files that are missing, empty or too large."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

from apps.knowledge.parsing.html import parse_html
from apps.knowledge.parsing.jsonl import parse_jsonl
from apps.knowledge.parsing.pdf import parse_pdf
from apps.knowledge.parsing.schemas import Parsed, ParsedDocument, Problem, ProblemCode, Unreadable
from apps.knowledge.parsing.text import parse_markdown, parse_text
from kernel.stored_texts import stored_text

MAX_FILE_BYTES = 50_000_000
MAX_TEXT_LENGTH = 5_000_000

_Parser = Callable[[bytes, str], ParsedDocument | Parsed]
_PARSERS: dict[str, _Parser] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".txt": parse_text,
    ".text": parse_text,
    ".html": parse_html,
    ".htm": parse_html,
    ".pdf": parse_pdf,
    ".jsonl": parse_jsonl,
    ".ndjson": parse_jsonl,
}
SUFFIXES = frozenset(_PARSERS)


def read(path: Path) -> Parsed:
    """Parse the file at `path`; what the disk refuses is a problem too."""
    try:
        if not path.is_file():
            return _failed(ProblemCode.MISSING, stored_text("The file doesn't exist."))
        if path.stat().st_size > MAX_FILE_BYTES:
            return _failed(
                ProblemCode.TOO_LARGE,
                stored_text("The file is larger than {size:d} MB.").format(size=MAX_FILE_BYTES // 1_000_000),
            )
        return parse(path.read_bytes(), path.name)
    except OSError as error:
        return _failed(
            ProblemCode.UNREADABLE, stored_text("The file could not be read ({reason}).").format(reason=error.strerror)
        )


def parse(data: bytes, name: str) -> Parsed:
    """Parse `data`, whose kind `name` tells by its ending."""
    parser = _PARSERS.get(PurePath(name).suffix.lower())
    if parser is None:
        return _failed(
            ProblemCode.UNSUPPORTED,
            stored_text("Only {types} files can be read.").format(types=", ".join(sorted(SUFFIXES))),
        )
    if not data.strip():
        return _failed(ProblemCode.EMPTY, stored_text("The file is empty."))
    try:
        result = parser(data, name)
    except Unreadable as refused:
        return Parsed(problems=(refused.problem,))
    return _drop_unusable(result if isinstance(result, Parsed) else Parsed((result,)))


def _drop_unusable(parsed: Parsed) -> Parsed:
    """Leave out documents without a visible character and documents too large to store as one."""
    kept, problems = [], list(parsed.problems)
    for document in parsed.documents:
        if not document.text.strip():
            problems.append(Problem(ProblemCode.EMPTY, stored_text("It contains no text."), where=document.part))
        elif len(document.text) > MAX_TEXT_LENGTH:
            problems.append(
                Problem(
                    ProblemCode.TOO_LARGE, stored_text("The text is too long for one document."), where=document.part
                )
            )
        else:
            kept.append(document)
    if not kept and not problems:
        problems.append(Problem(ProblemCode.EMPTY, stored_text("It contains no documents.")))
    return Parsed(tuple(kept), tuple(problems))


def _failed(code: ProblemCode, message: str) -> Parsed:
    return Parsed(problems=(Problem(code, message),))
