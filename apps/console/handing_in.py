"""What did somebody hand in with this form: a website, files or a text? One reading of it for every page that takes it.

A form sent twice carries the same `once`; each of several files gets a number of its own beside it.
"""

from __future__ import annotations

from uuid import UUID, uuid4, uuid5

from django.http import HttpRequest

from apps.console.members import StaffRequest
from apps.memory import intake
from apps.memory.models import Collection
from apps.memory.services import open_collection
from kernel.errors import SilasError

MOST_FILES = 20


class HandIn:
    """`what` is the button that was pressed: website, files or text."""

    def __init__(self, request: StaffRequest) -> None:
        self.request = request
        self.actor: str = request.member.user.actor
        self.once = once_of(request)

    def into(self, collection_id: UUID) -> SilasError | None:
        """Hand it in; the refusal, if it was refused. What was taken before it stays."""
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
            raise SilasError("nothing_in_it", "Choose a file first.", status=422)
        if len(files) > MOST_FILES:
            raise SilasError("too_many", f"At most {MOST_FILES} files at once.", status=422)
        for number, file in enumerate(files):
            # One byte more than is allowed is enough to know that it is too large.
            data = file.read(intake.MAX_UPLOAD_BYTES + 1)
            once = uuid5(self.once, str(number))
            intake.submit_file(collection_id, name=str(file.name or ""), data=data, once=once, actor=self.actor)

    def _text(self, collection_id: UUID) -> None:
        title, text = self.request.POST.get("title", ""), self.request.POST.get("text", "")
        intake.submit_text(collection_id, title=title, text=text, once=self.once, actor=self.actor)


def collection_of(name: str, *, actor: str) -> Collection:
    """The collection that the first run fills: what everybody may read."""
    return open_collection(name, title="Knowledge" if name == "knowledge" else "", actor=actor)


def once_of(request: HttpRequest) -> UUID:
    try:
        return UUID(request.POST.get("once", ""))
    except ValueError:
        return uuid4()
