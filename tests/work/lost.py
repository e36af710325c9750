"""Carry out a tenant's queued work until this process is killed: `python -m tests.work.lost TENANT`."""

from __future__ import annotations

import sys
from uuid import UUID

import django

if __name__ == "__main__":
    django.setup()
    from tests.factories.work import Hands

    Hands(UUID(sys.argv[1])).work(consumer="lost")
