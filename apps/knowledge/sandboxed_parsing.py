"""Parse untrusted documents and pages in the sandbox; only validated, bounded, plain data comes back.

A compromised parser can return no more than a document of its own could contain.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from apps.knowledge.parsing import Parsed, ParsedDocument, Problem, ProblemCode
from apps.knowledge.parsing.files import MAX_TEXT_LENGTH
from apps.knowledge.parsing.pages import MAX_LINKS, MAX_URL_LENGTH
from kernel.errors import SilasError
from kernel.stored_texts import stored_text
from kernel.unicode_safety import replace_unstorable
from sandbox.readers import Reader, ReaderFailed, run_reader

FILE_SECONDS, PAGE_SECONDS, ATTACHMENT_SECONDS = 75, 20, 10
_MOST_DOCUMENTS = 10_000
_BRINGS = ("apps.knowledge.parsing", "kernel.stored_texts")
# A character is written in JSON with six bytes at most.
_FILE = Reader(
    "apps.knowledge.parsing.readers", "read_file", _BRINGS, seconds=FILE_SECONDS, most_bytes=8 * MAX_TEXT_LENGTH
)
_PAGE = Reader("apps.knowledge.parsing.readers", "read_page", _BRINGS, seconds=PAGE_SECONDS, memory_mb=384)
_ATTACHMENT = Reader(
    "apps.knowledge.parsing.readers", "read_attachment", _BRINGS, seconds=ATTACHMENT_SECONDS, most_bytes=1_000_000
)


_Line = Annotated[str, Field(max_length=300), AfterValidator(replace_unstorable)]
_Words = Annotated[str, Field(max_length=2000), AfterValidator(replace_unstorable)]
_Whole = Annotated[str, Field(max_length=MAX_TEXT_LENGTH), AfterValidator(replace_unstorable)]
_Address = Annotated[str, Field(max_length=MAX_URL_LENGTH), AfterValidator(replace_unstorable)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    title: _Line
    text: _Whole
    url: _Words
    part: _Line


class _Problem(BaseModel):
    model_config = ConfigDict(extra="forbid")

    code: ProblemCode
    message: _Words
    where: _Line


class _Read(BaseModel):
    model_config = ConfigDict(extra="forbid")

    documents: list[_Document] = Field(max_length=_MOST_DOCUMENTS)
    problems: list[_Problem] = Field(max_length=_MOST_DOCUMENTS)
    links: list[_Address] = Field(default=[], max_length=MAX_LINKS)

    def parsed(self) -> Parsed:
        documents = tuple(ParsedDocument(**item.model_dump()) for item in self.documents)
        return Parsed(documents, tuple(Problem(**item.model_dump()) for item in self.problems))


def read_file(data: bytes, name: str) -> Parsed:
    """What `parsing.parse` would say; what cannot be read in its bounds is a problem too."""
    return _read(_FILE, FILE_SECONDS, data, name=name)[0]


def read_page(body: bytes, name: str, *, charset: str, base: str) -> tuple[Parsed, tuple[str, ...]]:
    """The page's document and the addresses that it leads to."""
    return _read(_PAGE, PAGE_SECONDS, body, name=name, charset=charset, base=base)


def read_attachment(data: bytes, name: str, *, most: int) -> Parsed:
    """The first `most` characters of a file that a visitor sent; `.docx` and `.xlsx` are read too."""
    return _read(_ATTACHMENT, ATTACHMENT_SECONDS, data, name=name, most=most)[0]


def dump_parsed(parsed: Parsed) -> str:
    """What was read, as text that another process takes back with `believed`."""
    return json.dumps(asdict(parsed), ensure_ascii=False)


def load_parsed(text: str) -> Parsed:
    """What another process has `written`, in the same bounds as a reader's own answer. Raises `ValidationError`."""
    return _Read.model_validate_json(text).parsed()


def _read(reader: Reader, seconds: int, data: bytes, **named: object) -> tuple[Parsed, tuple[str, ...]]:
    try:
        answer = _Read.model_validate(run_reader(reader, data, **named).answer)
    except ReaderFailed as failed:
        if failed.code == "too_demanding":
            return _failed(
                ProblemCode.TOO_LARGE,
                stored_text("Reading it takes too much memory or time (over {seconds:g} s).").format(seconds=seconds),
            )
        return _failed(ProblemCode.UNREADABLE, stored_text("The file is damaged and couldn't be read."))
    except ValidationError:
        return _failed(ProblemCode.UNREADABLE, stored_text("The file is damaged: it produced no readable text."))
    except SilasError as refused:
        message = stored_text("Files can't be read on this machine right now ({reason}).").format(reason=refused.code)
        return _failed(ProblemCode.NO_READER, message)
    return answer.parsed(), tuple(answer.links)


def _failed(code: ProblemCode, message: str) -> tuple[Parsed, tuple[str, ...]]:
    return Parsed(problems=(Problem(code, message),)), ()
