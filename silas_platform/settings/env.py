"""What did the operator tell us? Reads the environment; a secret may come as NAME or as a file named by NAME_FILE.

Fails loudly: a named file that cannot be read, or both forms at once, stops the start.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def secret(name: str) -> str:
    """The secret's value, or an empty string when it is not given to this process."""
    path = text(f"{name}_FILE")
    if path and text(name):
        raise ImproperlyConfigured(f"E_CFG_SECRET_TWICE: give {name} or {name}_FILE, not both")
    if not path:
        return text(name)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"E_CFG_SECRET_FILE: {name}_FILE cannot be read: {error.strerror}") from None


def public_keys(name: str) -> tuple[str, ...]:
    """Public keys in hex, separated by commas or white space; by value or by file."""
    found = tuple(re.split(r"[\s,]+", secret(name).strip(", \n"))) if secret(name) else ()
    for key in found:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ImproperlyConfigured(f"E_CFG_ROOT_KEYS: {name} holds public keys of 64 hex digits each")
    return found


def flag(name: str, *, default: bool) -> bool:
    value = text(name).lower()
    if name not in os.environ:
        return default
    if value in _TRUE | _FALSE:
        return value in _TRUE
    raise ImproperlyConfigured(f"E_CFG_FLAG: {name} must be on or off, not {value!r}")


def number(name: str, default: int) -> int:
    value = text(name)
    if not value:
        return default
    if not value.isdigit():
        raise ImproperlyConfigured(f"E_CFG_NUMBER: {name} must be a whole number, not {value!r}")
    return int(value)


def words(name: str) -> list[str]:
    return [word.strip() for word in text(name).split(",") if word.strip()]
