"""Rows with a name: one line of limited length, once among those it is chosen from, and only so many of them."""

from __future__ import annotations

from django.db import IntegrityError, models, transaction

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())


def sound_name(name: str, most: int) -> str:
    """The name as one line. Raises 400 `bad_name` for one that has no characters or more than `most`."""
    name = one_line(name)
    if not 1 <= len(name) <= most:
        raise SilasError(
            ErrorCode.BAD_NAME, gettext("A name must have 1 to {max_name} characters.").format(max_name=most)
        )
    return name


def require_room(rows: models.QuerySet[models.Model], most: int) -> None:
    """Raises 409 `too_many` where there are as many rows as there may be."""
    if rows.count() >= most:
        raise SilasError(
            ErrorCode.TOO_MANY,
            gettext("You've reached the maximum of {most}. Delete one first.").format(most=most),
            status=409,
        )


def save_named(row: models.Model) -> None:
    """Raises 409 `name_taken` where the database has the name already; of two at once it lets one."""
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise SilasError(ErrorCode.NAME_TAKEN) from None
