"""Carry out what workers owe, as a worker would, with a worker's database role: `python -m tests.work.drained
TENANT`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any
from uuid import UUID

import django


def drain_as_a_worker(tenant: Any) -> None:
    """In a process of its own that can do nothing else than a worker can (silas_platform.worker_rights)."""
    env = {**os.environ, "DATABASE_URL": os.environ["DATABASE_WORK_URL"], "PYTHONWARNINGS": "ignore"}
    env.pop("SILAS_SIGNING_KEY", None)
    subprocess.run([sys.executable, "-m", "tests.work.drained", str(tenant.pk)], env=env, check=True, timeout=120)


if __name__ == "__main__":
    django.setup()
    from tests.factories.work import Hands

    Hands(UUID(sys.argv[1])).work()
