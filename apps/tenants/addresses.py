"""Validate e-mail addresses by their form."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email


def is_email(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True
