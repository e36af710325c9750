"""Dates and numbers of English pages: day before month, and 24 hours."""

from django.conf.locale.en_GB.formats import *  # noqa: F403 (Django reads every format from here)
