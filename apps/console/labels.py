"""Labels of enumerations as they are written within a sentence."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import get_language


def inline_label(label: str | Promise) -> str:
    """Return the label in lower case, except in German, which capitalises nouns."""
    return str(label) if (get_language() or "").startswith("de") else str(label).lower()
