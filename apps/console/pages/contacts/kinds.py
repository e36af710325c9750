"""What the kinds of personal data are called on the page of an erasure, by the names in its receipt."""

from __future__ import annotations

from django.utils.translation import gettext_lazy

KIND_NAMES = {
    "contacts": gettext_lazy("Contacts"),
    "identities": gettext_lazy("Identities"),
    "notes": gettext_lazy("Notes"),
    "imported_conversations": gettext_lazy("Imported conversations"),
    "conversations": gettext_lazy("Conversations"),
    "messages": gettext_lazy("Messages"),
    "places_of_messages": gettext_lazy("Times of messages"),
    "forms_in_conversations": gettext_lazy("Questions in conversations"),
    "forms_before_chat": gettext_lazy("Forms before the chat"),
    "consents": gettext_lazy("Consents"),
    "files": gettext_lazy("Files"),
    "transcripts": gettext_lazy("Transcripts"),
    "ratings": gettext_lazy("Comments of ratings"),
    "labels": gettext_lazy("Labels"),
    "channel_addresses": gettext_lazy("Addresses on channels"),
    "channel_messages": gettext_lazy("Messages on channels"),
    "memories": gettext_lazy("Memories"),
    "remembered_names": gettext_lazy("Remembered names"),
    "unanswered_questions": gettext_lazy("Unanswered questions"),
    "cards": gettext_lazy("Approvals"),
    "work": gettext_lazy("Work"),
    "records": gettext_lazy("Records"),
    "audit_log": gettext_lazy("Audit log"),
}
