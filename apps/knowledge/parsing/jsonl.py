"""Parse a JSON lines file: one object a line. A broken line is a problem of its own, and the other lines are read.

The text is in `text`, `content`, `body` or `answer`; `title` (or `question`, `name`), `url` and `id` are optional. A
line's identity is its `id`, else its `url`, else its title, so that lines may be added and moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from apps.knowledge.parsing.schemas import Parsed, ParsedDocument, Problem, ProblemCode
from apps.knowledge.parsing.text import clean, decode, one_line
from kernel.stored_texts import stored_text

_TEXT = ("text", "content", "body", "answer")
_TITLE = ("title", "question", "name")


def parse_jsonl(data: bytes, name: str) -> Parsed:
    documents: dict[str, ParsedDocument] = {}
    problems: list[Problem] = []
    for number, line in enumerate(decode(data).split("\n"), start=1):
        if not line.strip():
            continue
        result = _document(line, name, number)
        if isinstance(result, ParsedDocument) and result.part in documents:
            result = _problem(
                number,
                stored_text("the id {id} is on an earlier line").format(id=repr(result.part[:80])),
                ProblemCode.DUPLICATE,
            )
        if isinstance(result, Problem):
            problems.append(result)
        else:
            documents[result.part] = result
    return Parsed(tuple(documents.values()), tuple(problems))


def _document(line: str, name: str, number: int) -> ParsedDocument | Problem:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return _problem(number, stored_text("it is not JSON"))
    if not isinstance(row, Mapping):
        return _problem(number, stored_text("it is not an object"))
    text = next((clean(value) for value in _texts(row, _TEXT)), "")
    if not text:
        return _problem(number, stored_text("it has no text in any of {fields}").format(fields=", ".join(_TEXT)))
    title = next((one_line(value) for value in _texts(row, _TITLE)), "")
    url = one_line(row.get("url"), 2000)
    identity = row.get("id")
    part = one_line(str(identity) if isinstance(identity, int | str) else "") or url[:300] or title or f"line {number}"
    return ParsedDocument(title=title or f"{PurePath(name).stem} {part}"[:300], text=text, url=url, part=part)


def _texts(row: Mapping[str, object], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and value.strip():
            yield value


def _problem(number: int, reason: str, code: ProblemCode = ProblemCode.BROKEN_LINE) -> Problem:
    return Problem(
        code,
        stored_text("The line was left out: {reason}.").format(reason=reason),
        where=stored_text("line {number:d}").format(number=number),
    )
