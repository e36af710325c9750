"""Answer with the archive of everything about a person."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from uuid import UUID

from django.http import FileResponse

from apps.contacts.person_export import Person, export_person


def export_response(find: Callable[[], Person], tenant_id: UUID, *, actor: str) -> FileResponse:
    """The archive, written to a file that is gone with the response. Outside of any scope; raises as
    `export_person`."""
    with ExitStack() as unless_answered:
        out = unless_answered.enter_context(tempfile.TemporaryFile())
        report = export_person(find, tenant_id, out, actor=actor)
        unless_answered.pop_all()  # the response closes the file
    out.seek(0)
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    name = report.reference.replace(":", "-")
    return FileResponse(
        out, as_attachment=True, filename=f"{name}.zip", content_type="application/zip", headers=headers
    )
