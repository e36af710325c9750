"""Read settings from the environment with django-environ; each may be given as NAME or as a file named by NAME_FILE.

Anything malformed stops the start with an `ImproperlyConfigured` that begins with a code: a file that cannot be read,
both forms at once, a flag or number that is none. `environ.Env` itself is not used for values: it takes a password that
begins with `$` for the name of another variable, and any unknown word for a false flag.
"""

from __future__ import annotations

import os
import re

from django.core.exceptions import ImproperlyConfigured
from environ.fileaware_mapping import FileAwareMapping

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_values = FileAwareMapping(cache=False)


def text(name: str, default: str = "") -> str:
    """The value without surrounding white space; `default` when it is not given to this process."""
    if os.environ.get(name, "").strip() and os.environ.get(f"{name}_FILE"):
        raise ImproperlyConfigured(f"E_CFG_SECRET_TWICE: give {name} or {name}_FILE, not both")
    try:
        return str(_values.get(name, default)).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is not UTF-8")
        raise ImproperlyConfigured(f"E_CFG_SECRET_FILE: {name}_FILE cannot be read: {reason}") from None


def by_name(pattern: str) -> dict[str, str]:
    """Return the variables whose whole name matches and that are not empty, by the pattern's group in lower case."""
    names = {name.removesuffix("_FILE") for name in os.environ}
    found = {match[1].lower(): text(match[0]) for name in names if (match := re.fullmatch(pattern, name))}
    return {name: value for name, value in found.items() if value}


def public_keys(name: str) -> tuple[str, ...]:
    """Public keys in hex, separated by commas or white space; by value or by file."""
    found = tuple(re.findall(r"[^\s,]+", text(name)))
    for key in found:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ImproperlyConfigured(f"E_CFG_ROOT_KEYS: {name} holds public keys of 64 hex digits each")
    return found


def flag(name: str, *, default: bool) -> bool:
    value = text(name, "on" if default else "off").lower()
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
