"""Dates and numbers of English pages: day before month, and 24 hours."""

from django.conf.locale.en_GB.formats import *  # type: ignore[import-untyped]  # noqa: F403 (Django reads all formats here)

TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j F Y, H:i"
SHORT_DATETIME_FORMAT = "d/m/Y H:i"
