"""Events of memory for the rooms above. Receivers run inside the transaction that stored the document."""

from __future__ import annotations

from uuid import UUID

from kernel.events import Event

# (document, its collection, who stored it): a document came in, or has another text than before.
document_stored: Event[[UUID, UUID, str]] = Event("document_stored")
