"""HTTP headers of a visitor's file: a download, never rendered as a page of ours."""

from __future__ import annotations

from django.core.files import File
from django.http import FileResponse

from apps.visitors.file_types import KINDS
from apps.visitors.models import VisitorFile


def as_download(row: VisitorFile, content: File[bytes]) -> FileResponse:
    """Our own type for its kind, no guessing, and should a browser show it all the same, nothing in it runs."""
    kind = KINDS[row.kind]
    response = FileResponse(content, as_attachment=True, filename=row.name, content_type=kind.media_type)
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    return response
