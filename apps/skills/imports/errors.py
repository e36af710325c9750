"""The error of everything that is not imported: one code, and a sentence that says why."""

from __future__ import annotations

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError


def import_refused(message: str, **extra: object) -> SilasError:
    return SilasError(ErrorCode.IMPORT_REFUSED, message, extra=extra)
