"""Artifacts as files to download."""

from __future__ import annotations

from io import StringIO

from django.http import HttpResponse

from apps.autonomy.enums import ArtifactKind
from apps.autonomy.models import Artifact
from kernel.csv_files import write_rows

_EXTENSIONS = {
    ArtifactKind.MARKDOWN: ("md", "text/markdown"),
    ArtifactKind.TABLE: ("csv", "text/csv"),
    ArtifactKind.TEXT: ("txt", "text/plain"),
}


def artifact_response(artifact: Artifact) -> HttpResponse:
    """The artifact to be saved, never shown by the browser. Its name is made of the id: its title is a run's text."""
    extension, content_type = _EXTENSIONS[ArtifactKind(artifact.kind)]
    content = artifact.content if artifact.table is None else _csv(artifact.table["columns"], artifact.table["rows"])
    name = f"artifact-{artifact.pk}.{extension}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return HttpResponse(content, content_type=f"{content_type}; charset=utf-8", headers=headers)


def _csv(columns: list[str], rows: list[list[str]]) -> str:
    lines = StringIO()
    write_rows(lines, (columns, *rows))
    return lines.getvalue()
