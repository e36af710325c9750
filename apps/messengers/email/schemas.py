"""What was read of a mail, validated: it comes out of the sandbox."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kernel.unicode_safety import replace_unstorable

Line = Annotated[str, Field(max_length=254), AfterValidator(replace_unstorable)]


class MailFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Line
    size: Annotated[int, Field(ge=0)]


class Results(BaseModel):
    """`server`: who checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: Line
    spf: Line = ""
    dkim: Line = ""
    dmarc: Line = ""


class Mail(BaseModel):
    """`failed`: the ids of mails of ours that this one reports as undeliverable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message_id: Line
    sender: Line
    name: Line
    recipients: Annotated[list[Line], Field(max_length=50)]
    references: Annotated[list[Line], Field(max_length=30)]
    subject: Line
    text: Annotated[str, Field(max_length=20_000), AfterValidator(replace_unstorable)]
    automatic: bool
    failed: Annotated[list[Line], Field(max_length=5)]
    results: Annotated[list[Results], Field(max_length=5)]
    loop: Line
    files: Annotated[list[MailFile], Field(max_length=10)]
