"""The example programs, as they are, against the demo company, a running server and running workers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from apps.approvals.enums import ApprovalScope, Risk
from apps.approvals.keys import client_keys
from apps.skills.models import Record
from apps.tenants.models import Deployment, Tenant, User
from apps.tenants.services import create_api_key
from kernel.tenancy import in_thread, tenant_scope

CLIENTS = Path(__file__).parents[2] / "clients"


def prepare(email: str, signing: Path) -> tuple[str, str, str]:
    """(API key, deployment, policy's address): the program's keys, registered by the owner as at the console."""
    private = Ed25519PrivateKey.generate()
    signing.write_bytes(private.private_bytes_raw())
    with tenant_scope(Tenant.objects.get(slug="meridian-insurance")):
        made = create_api_key("Example")
        client_keys.register(
            User.objects.get(email=email),
            made.row,
            public_key=private.public_key().public_bytes_raw().hex(),
            scopes=[ApprovalScope.FULL_PLAN],
            max_risk=Risk.MEDIUM,
        )
        return made.key, str(Deployment.objects.earliest("created_at").pk), str(Record.objects.get(key="HM-20418").data)


def address() -> str:
    with tenant_scope(Tenant.objects.get(slug="meridian-insurance")):
        return str(Record.objects.get(key="HM-20418").data)


async def test_program_opens_a_conversation_approves_and_reads_the_proof(
    web: str,
    worker: None,
    seeded: Any,
    database: None,
    tmp_path: Path,
) -> None:
    key, deployment, before = await in_thread(prepare, seeded["meridian-insurance owner"].email, tmp_path / "key")
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CLIENTS / "examples" / "approve_a_change.py"),
        web,
        deployment,
        env={
            **os.environ,
            "PYTHONPATH": str(CLIENTS / "python-rest" / "src"),
            "SILAS_KEY": key,
            "SILAS_SIGNING_FILE": str(tmp_path / "key"),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await program.communicate())[0].decode()
    assert program.returncode == 0, printed
    assert "outcome: decided" in printed
    assert "log broken: None" in printed
    assert "1 Mill Lane" not in before
    assert "1 Mill Lane" in await in_thread(address)
