"""`manage.py chat`: a test conversation in the terminal."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import ingest_texts


def chat(monkeypatch: pytest.MonkeyPatch, deployment: Any, *lines: str) -> tuple[str, str]:
    """What it prints and what it complains about."""
    out, errors = StringIO(), StringIO()
    monkeypatch.setattr(sys, "stdin", StringIO("".join(f"{line}\n" for line in lines)))
    call_command("chat", deployment.public_key, stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


def test_question_is_answered_with_its_document_in_a_test_conversation(
    deployment: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ingest_texts(deployment.tenant, tmp_path, Bicycles="# Bicycles\n\nBicycles are repaired on Tuesdays.")
    told, _ = chat(monkeypatch, deployment, "When are bicycles repaired?", "")
    assert told.count("Bot: ") == 1
    assert "Tuesdays" in told
    assert "  [1] Bicycles" in told
    with tenant_scope(deployment.tenant_id):
        assert ChatSession.objects.get().is_test


def test_refused_message_is_told_and_ends_nothing(
    deployment: Any, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MAX_CHRONICLE = 2
    told, errors = chat(monkeypatch, deployment, "Hello", "And now?", "")
    assert told.count("Bot: ") == 1
    assert "start a new one" in errors
    with tenant_scope(deployment.tenant_id):
        assert ChronicleEntry.objects.filter(sender="visitor").values_list("text", flat=True).get() == "Hello"


def test_unknown_deployment_is_named(database: None) -> None:
    with pytest.raises(CommandError, match="no deployment nowhere"):
        call_command("chat", "nowhere")
