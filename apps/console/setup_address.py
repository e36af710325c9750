"""The path of the first set-up screen, with a code that only this installation can make."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

from apps.tenants.first_run import setup_code


def setup_path() -> str:
    return reverse("console-setup", args=[setup_code(settings.SECRET_KEY)])
