"""Answer with the archive of everything about a contact."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from uuid import UUID

from django.http import FileResponse

from apps.contacts.person_export import export_person, person_of_contact


def export_response(contact_id: UUID, tenant_id: UUID, *, actor: str) -> FileResponse:
    """The archive, written to a file that is gone with the response. Outside of any scope; raises `NotFound`."""
    with ExitStack() as unless_answered:
        out = unless_answered.enter_context(tempfile.TemporaryFile())
        export_person(partial(person_of_contact, contact_id), tenant_id, out, actor=actor)
        unless_answered.pop_all()  # the response closes the file
    out.seek(0)
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return FileResponse(
        out, as_attachment=True, filename=f"contact-{contact_id}.zip", content_type="application/zip", headers=headers
    )
