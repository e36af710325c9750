"""What waited in tables of their own in an earlier release is owed on the bus after the migrations."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections

from apps.bus.models import QueueMessage
from apps.knowledge import intake
from apps.knowledge.models import Intake
from apps.knowledge.services import open_collection
from apps.work import document_tools
from apps.work.enums import EffectState
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import read_handed_in
from tests.factories.skills import plain_folder, propose, try_proposed
from tests.factories.work import make_desk


def migrated(tenant: Any, migration: str) -> None:
    """As if nothing had been owed so far, and this migration ran."""
    with tenant_scope(tenant):
        QueueMessage.objects.all().delete()
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"BEGIN; {importlib.import_module(migration).OWE} COMMIT")


@pytest.mark.parametrize("kind", ["file", "text"])
def test_what_was_handed_in_is_read(tenant: Any, kind: str) -> None:
    with tenant_scope(tenant):
        home = open_collection("help").pk
        if kind == "file":
            intake.submit_file(home, name="a.md", data=b"We open at nine.", once=uuid4(), actor="user:test")
        else:
            intake.submit_text(home, title="Opening", text="We open at nine.", once=uuid4(), actor="user:test")
    migrated(tenant, "apps.memory.migrations.0003_intakes_on_the_bus")
    read_handed_in(tenant)
    with tenant_scope(tenant):
        assert Intake.objects.get().state == "done"


def test_what_was_proposed_is_tried(tenant: Any, tmp_path: Path) -> None:
    version = propose(tenant, plain_folder(tmp_path, "print(1)", args={}))
    migrated(tenant, "apps.skills.migrations.0004_trials_on_the_bus")
    try_proposed(tenant)
    with tenant_scope(tenant):
        version.refresh_from_db()
    assert version.card_id is not None


def test_change_of_a_document_is_looked_at(tenant: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    item = desk.waiting()
    with tenant_scope(tenant):
        effect = document_tools._request(item.pk, "digest")
    migrated(tenant, "apps.work.migrations.0005_document_changes_on_the_bus")
    read_handed_in(tenant)
    with tenant_scope(tenant):
        effect.refresh_from_db()
    assert effect.state == EffectState.REFUSED
