"""Files of a visitor that models read: as text in the prompt, or as they are where the model reads their type. Pure.

Which model reads which type is decided by its name, because providers' clients do not tell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

PICTURES = frozenset(("image/png", "image/jpeg", "image/webp", "image/gif"))
PDF = "application/pdf"
# The reason of a file that needs a password, as `Attachment.problem`.
PROTECTED = "it is protected by a password"
# What a provider charges for a picture or a PDF of a few pages, rounded up.
TOKENS = 3000
_READ_PICTURES = ("gpt-4o", "gpt-4.1", "gpt-5", "o3", "o4-", "claude-", "gemini-", "pixtral", "grok-4", "llama-4")
_READ_PDFS = ("gpt-4o", "gpt-4.1", "gpt-5", "claude-", "gemini-")


@dataclass(frozen=True)
class Attachment:
    """A file that the visitor sent. `text` is what it says as far as it was read, `data` the bytes of a picture or PDF,
    `problem` why nothing was read ("it is damaged")."""

    file_id: str
    name: str
    media_type: str
    text: str = ""
    data: bytes = b""
    problem: str = ""


def readable_types(model_name: str) -> frozenset[str]:
    """The media types that the model of this name (with or without its provider) reads as they are."""
    name = model_name.rpartition(":")[2].rpartition("/")[2].lower()
    pictures = PICTURES if name.startswith(_READ_PICTURES) else frozenset()
    return pictures | {PDF} if name.startswith(_READ_PDFS) else pictures


def content_of(prompt: str, attachments: Sequence[Attachment], readable: Collection[str]) -> str | list[UserContent]:
    """The user's part of a request: the prompt, and behind it the files that the model reads."""
    shown = [each for each in attachments if each.data and each.media_type in readable]
    if not shown:
        return prompt
    from pydantic_ai.messages import BinaryContent

    return [prompt, *(BinaryContent(each.data, media_type=each.media_type, identifier=each.file_id) for each in shown)]
