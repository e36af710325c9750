"""Imports from the upload form: a website, files or a text, for every page that has this form.

A form sent twice has the same `once` key; each of several files derives its own key from it.
"""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

from django.http import HttpRequest
from django.utils.translation import gettext as _

from apps.console.members import StaffRequest
from apps.knowledge import intake
from apps.knowledge.models import Collection
from apps.knowledge.services import open_collection
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ids import parse_id

MAX_FILES = 20


class Upload:
    """One submission of the form; `what` is its button: website, files or text."""

    def __init__(self, request: StaffRequest) -> None:
        self.request = request
        self.actor: str = request.member.user.actor
        self.once = idempotency_key_of(request)

    def into(self, collection_id: UUID) -> SilasError | None:
        """Start the imports and return the refusal, if any. Files accepted before a refusal stay."""
        try:
            match self.request.POST.get("what"):
                case "website":
                    self._website(collection_id)
                case "files":
                    self._files(collection_id)
                case _:
                    self._text(collection_id)
        except SilasError as refusal:
            if refusal.status not in (400, 409, 422):
                raise
            return refusal
        return None

    def _website(self, collection_id: UUID) -> None:
        address = self.request.POST.get("address", "")[:600]
        intake.submit_website(collection_id, address=address, once=self.once, actor=self.actor)

    def _files(self, collection_id: UUID) -> None:
        files = self.request.FILES.getlist("files")
        if not files:
            raise SilasError(ErrorCode.NOTHING_IN_IT, _("Choose a file first."))
        if len(files) > MAX_FILES:
            raise SilasError(ErrorCode.TOO_MANY, _("Upload at most {number} files at a time.").format(number=MAX_FILES))
        for number, file in enumerate(files):
            # One byte more than allowed is enough to detect a file that is too large.
            data = file.read(intake.MAX_UPLOAD_BYTES + 1)
            once = uuid5(self.once, str(number))
            intake.submit_file(collection_id, name=str(file.name or ""), data=data, once=once, actor=self.actor)

    def _text(self, collection_id: UUID) -> None:
        title, text = self.request.POST.get("title", ""), self.request.POST.get("text", "")
        intake.submit_text(collection_id, title=title, text=text, once=self.once, actor=self.actor)


def collection_of(name: str, *, actor: str) -> Collection:
    """Open the public collection that the first run fills."""
    return open_collection(name, title="Knowledge" if name == "knowledge" else "", actor=actor)


def idempotency_key_of(request: HttpRequest) -> UUID:
    return parse_id(request.POST.get("once", "")) or uuid4()
