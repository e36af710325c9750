"""Read visitors' files for models: the last few of a conversation, within bounds.

The text of a PDF or office file is extracted once, in the sandbox, when the file is received, and stored with it. A
text file is decoded here; pictures and PDFs are handed to models that read them as they are (`llm.attachments`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

from apps.knowledge.parsing import ProblemCode
from apps.knowledge.sandboxed_parsing import read_attachment
from apps.sessions.enums import Sender
from apps.visitors import file_storage
from apps.visitors.file_types import KINDS, Kind
from apps.visitors.models import VisitorFile
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable
from llm.attachments import PROTECTED, Attachment

MOST_FILES = 3
MOST_BYTES = 5 * 1024 * 1024
MOST_CHARACTERS = 20_000
_TEXTS, _AS_THEY_ARE, _EXTRACTED = "texts", ("pictures", "pdfs"), ("pdfs", "office")
# What models are told.
_PROBLEMS = {
    ProblemCode.ENCRYPTED_PDF: PROTECTED,
    ProblemCode.TOO_LARGE: "it is too large to be read",
    ProblemCode.EMPTY: "it holds no text, only pictures",
    ProblemCode.NO_READER: "files cannot be read at the moment",
}
_DAMAGED = "it is damaged"


@dataclass(frozen=True)
class FileText:
    """What was read of a file, or the code of the problem; both are empty where nothing is to be read."""

    text: str = ""
    problem: str = ""


def extract_text(path: Path, kind: Kind, size: int) -> FileText:
    """The text of a PDF or office file, read in the sandbox. Raises nothing: a file that cannot be read is kept."""
    if kind.group not in _EXTRACTED:
        return FileText()
    if size > MOST_BYTES:
        return FileText(problem=ProblemCode.TOO_LARGE)
    parsed = read_attachment(path.read_bytes(), f"file{kind.endings[0]}", most=MOST_CHARACTERS)
    text = "\n\n".join(each.text for each in parsed.documents).strip()[:MOST_CHARACTERS]
    if text:
        return FileText(text)
    return FileText(problem=parsed.problems[0].code if parsed.problems else ProblemCode.EMPTY)


def read(tenant_id: UUID, session_id: UUID, after: int) -> tuple[Attachment, ...]:
    """The visitor's newest files behind place `after`, oldest first. A file that is gone is left out, and those of
    staff are no model's."""
    with tenant_scope(tenant_id):
        sent = VisitorFile.objects.filter(session_id=session_id, sender=Sender.VISITOR, seq__gt=after)
        rows = list(sent.order_by("-seq")[:MOST_FILES])
    return tuple(file for row in reversed(rows) if (file := _attachment(row)) is not None)


def _attachment(row: VisitorFile) -> Attachment | None:
    """A file that is too large keeps its name and what was read of it only."""
    kind = KINDS[row.kind]
    problem = _PROBLEMS.get(ProblemCode(row.problem), _DAMAGED) if row.problem else ""
    media_type = kind.media_type.partition(";")[0]
    told = Attachment(str(row.pk), row.name, media_type, text=row.text, problem=problem)
    if row.size > MOST_BYTES or kind.group not in (_TEXTS, *_AS_THEY_ARE):
        return told
    try:
        with file_storage.storage().open(row.stored_name) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    if kind.group == _TEXTS:
        text = data.decode("utf-8-sig", "replace")[:MOST_CHARACTERS]
        return replace(told, text=replace_unstorable(text))
    return replace(told, data=data)
