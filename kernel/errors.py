"""Exceptions with a machine-readable code and one JSON shape.

`SilasError` is for a caller that should not have asked; an expected refusal is a return value. DRF, pages and sockets
each turn it into a response in one place (contract interfaces, HTTP: errors).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kernel.error_codes import ErrorCode

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def error_location(error: BaseException) -> str:
    """An exception as a log may name it: its class and innermost source line, never its message."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    # Only the place: a message may quote what a visitor wrote, or a secret.
    where = f" at {frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else ""
    return f"{type(error).__name__}{where}"


def _translated(text: str) -> str:
    from kernel.language import gettext  # here, because a sandbox's own processes raise our errors without Django

    return gettext(text)


class SilasError(Exception):
    """A refusal with a machine-readable `code`, a sentence for people and an HTTP `status`.

    Without a message or status it has those of its code.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: StrOrPromise | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(_translated(code.text) if message is None else message)
        self.code = code
        self.extra = dict(extra or {})
        self.status = code.status if status is None else status

    @property
    def message(self) -> str:
        """The sentence in the language of the person who reads it now."""
        return str(self.args[0])

    def as_json(self) -> dict[str, object]:
        return {"error": {"code": self.code, "message": self.message, "extra": self.extra}}


class InvalidFields(SilasError):
    """Values are missing or wrong; `fields` are the problems by field. Of Django's `ValidationError`, its
    `message_dict`."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        message = _translated("Some fields are missing or invalid.")
        super().__init__(ErrorCode.INVALID, message, extra={"fields": fields})


class NotFound(SilasError):
    """The object does not exist for this caller: unknown and foreign ones look the same (contract interfaces)."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_FOUND)
