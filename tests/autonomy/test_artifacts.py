"""What a run hands over whole: a document or a table, with a preview, a download and a size limit."""

from __future__ import annotations

from typing import Any

import pytest

from apps.autonomy.artifact_files import artifact_response
from apps.autonomy.enums import ArtifactKind
from apps.autonomy.models import Artifact
from apps.autonomy.schemas import DraftArtifact
from apps.autonomy.services import provenance, session_results
from apps.guard.schemas import CallFailed
from tests.factories.autonomy import House
from tests.factories.console import browser
from tests.fakes.openai_server import final

MODEL = "openai-chat:gpt-4o-mini"
REPORT = "# Coats\n\n**30 days** for 4711 0815 0000 0000\n\n<script>alert(1)</script> ![x](https://evil.test/p.png)"


def artifacts(house: House, session: Any) -> list[Artifact]:
    return house.do(lambda: list(Artifact.objects.filter(session=session)))


def test_report_of_a_model_is_kept_shown_and_downloaded(modelled: House, provider: Any) -> None:
    with provider(final({"action": "done"}), final({"summary": "Done.", "report": REPORT})):
        session = modelled.through(modelled.task(name="Coats", model_name=MODEL))
    (artifact,) = artifacts(modelled, session)
    assert artifact.title == "Coats"
    assert artifact.taint == "external"
    assert modelled.receipt(session)["artifacts"] == [
        {"id": str(artifact.pk), "kind": "markdown", "title": "Coats", "size": artifact.size}
    ]

    client = browser(modelled.owner)
    shown = client.get(f"/console/runs/{session.pk}/").content.decode()
    assert "<strong>30 days</strong>" in shown
    assert "<script>alert(1)" not in shown
    assert 'evil.test/p.png"' not in shown
    listed = client.get(f"/api/v1/autonomous-sessions/{session.pk}/artifacts").json()
    assert [(each["id"], each["kind"]) for each in listed] == [(str(artifact.pk), "markdown")]
    assert "30 days" in client.get(f"/api/v1/artifacts/{artifact.pk}").json()["content"]
    file = client.get(f"/api/v1/artifacts/{artifact.pk}/file")
    assert file["Content-Disposition"].startswith("attachment;")
    assert "**30 days**" in file.content.decode()

    modelled.do(provenance.quarantine, provenance.Origin("session", str(session.pk)), actor="user:1")
    assert client.get(f"/api/v1/artifacts/{artifact.pk}").status_code == 404
    assert client.get(f"/console/runs/artifacts/{artifact.pk}/file/").status_code == 404


def test_table_is_shown_and_downloaded_without_formulas(house: House) -> None:
    session = house.through(house.task())
    draft = DraftArtifact(
        title="Refunds", kind=ArtifactKind.TABLE, columns=("Order", "Amount"), rows=(("NW-1", "=1+1"), ("NW-2", "<b>"))
    )
    for _ in range(2):
        house.do(session_results.write_artifact, session.pk, draft)
    (artifact,) = artifacts(house, session)
    assert artifact_response(artifact).content.decode() == "Order,Amount\r\nNW-1,'=1+1\r\nNW-2,<b>\r\n"
    shown = browser(house.owner).get(f"/console/runs/{session.pk}/").content.decode()
    assert "<td>NW-1</td><td>=1+1</td>" in shown
    assert "<td>&lt;b&gt;</td>" in shown


def test_artifact_is_bounded(house: House) -> None:
    session = house.through(house.task())
    row = tuple("x" * 500 for _ in range(20))
    draft = DraftArtifact(title="Big", kind=ArtifactKind.TABLE, columns=row, rows=(row,) * 30)
    with pytest.raises(CallFailed, match="too large"):
        house.do(session_results.write_artifact, session.pk, draft)
    assert artifacts(house, session) == []
