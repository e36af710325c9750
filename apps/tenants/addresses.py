"""Is that a mail address? By its form; nobody is asked whether there is a box."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email


def is_email(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True
