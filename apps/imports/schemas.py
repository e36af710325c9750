"""Records of an export, as the sandbox hands them over; validated before they are stored, and again when applied."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from apps.imports.reading import MAX_MESSAGES, MAX_TEXT
from kernel.unicode_safety import replace_unstorable

_Id = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(replace_unstorable)]
_Line = Annotated[str, Field(max_length=254), AfterValidator(replace_unstorable)]
_Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(replace_unstorable)]


def _as_time(text: str) -> str:
    """ISO 8601 with an offset, or "" for anything else."""
    try:
        return text if datetime.fromisoformat(text).tzinfo else ""
    except ValueError:
        return ""


_Time = Annotated[str, Field(max_length=40), AfterValidator(_as_time)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    line: int = Field(ge=0)


class ContactRecord(_Record):
    kind: Literal["contact"]
    external_id: _Id
    customer: Annotated[str, Field(max_length=80), AfterValidator(replace_unstorable)] = ""
    name: Annotated[str, Field(max_length=120), AfterValidator(replace_unstorable)] = ""
    email: _Line = ""
    phone: _Line = ""
    attributes: dict[str, str | int | float | bool] = Field(default={}, max_length=200)


class MessageRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    sender: Literal["customer", "team", "bot"]
    author: _Line
    text: _Text
    at: _Time


class ConversationRecord(_Record):
    kind: Literal["conversation"]
    external_id: _Id
    contact: _Id
    subject: _Line
    state: _Line
    started_at: _Time
    messages: list[MessageRecord] = Field(min_length=1, max_length=MAX_MESSAGES)


class ReplyRecord(_Record):
    kind: Literal["reply"]
    name: Annotated[str, Field(max_length=40), AfterValidator(replace_unstorable)]
    text: _Text


Record = Annotated[ContactRecord | ConversationRecord | ReplyRecord, Field(discriminator="kind")]
RECORD: TypeAdapter[ContactRecord | ConversationRecord | ReplyRecord] = TypeAdapter(Record)


class Part(BaseModel):
    """What one row of `ImportPart` holds."""

    model_config = ConfigDict(extra="forbid")

    records: list[Record] = Field(max_length=1000)
    problems: list[tuple[int, str]] = Field(default=[], max_length=1000)
