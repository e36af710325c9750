"""Validate e-mail addresses by their form, and say where people open the console."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import HttpRequest


def is_email(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def console_origin(request: HttpRequest) -> str:
    """`PASSKEY_ORIGIN`, which is set behind a proxy, else the origin of the request."""
    return settings.PASSKEY_ORIGIN or f"{request.scheme}://{request.get_host()}"
