"""REST API of contacts: list, read, add, change, merge and unmerge them, with their conversations, memories,
consents and notes; export and erase what is kept of a person.

For members as in the console, and API keys with the scopes `contacts:read` and `contacts:write`; memories need
`memory:read`. A contact's ETag is another one after every edit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.contacts import erasure, history, queries, services
from apps.contacts.enums import ContactSource, ErasureState, Proof, identity_kinds
from apps.contacts.export_serving import export_response
from apps.contacts.models import Contact
from apps.contacts.person_export import Person, person_of_contact, person_of_visitor
from apps.contacts.queries import MAX_SEARCH, ContactFilter
from apps.contacts.rules import MAX_CUSTOMER, MAX_IDENTITIES, MAX_NAME, MAX_NOTE, MAX_VALUE
from apps.memory.api import MemoriesAnswer
from apps.memory.models import MemoryItem
from apps.memory.queries import MemoryFilter, list_memories
from apps.sessions.enums import Owner
from apps.tenants.api_auth import (
    IF_MATCH,
    PageRequest,
    PersonAnswer,
    RequestSerializer,
    ScopedView,
    if_match_versions,
    uncached,
    validated,
)
from apps.tenants.api_auth import RESOURCE_REFUSALS as _REFUSALS
from apps.tenants.enums import Capability, KeyScope
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

_SAVE_REFUSALS: dict[int, Any] = {
    **_REFUSALS,
    400: OpenApiResponse(description="`invalid`, `contact_field`: a field is wrong"),
    409: OpenApiResponse(description="`contact_known`: another contact has this customer id"),
}


_ERASE_REFUSALS = {**_REFUSALS, 409: OpenApiResponse(description="`erasure_running`: of a part of this person")}
_EXPORT_REFUSALS: dict[int, Any] = {
    **_REFUSALS,
    409: OpenApiResponse(description="`erasure_running`: the person's data is being erased"),
}


class ContactIdentityAnswer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=list(dict(identity_kinds())))
    value = serializers.CharField()
    proved_by = serializers.ChoiceField(choices=Proof.values, help_text="Empty for an identity that is not verified")
    proved_at = serializers.DateTimeField(allow_null=True)


class ContactAttributeAnswer(serializers.Serializer[Any]):
    value = serializers.JSONField(help_text="A text, a number, or true or false")
    proved = serializers.BooleanField(help_text="False for what the website sent without a signature")


class ContactMergeAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    contact = serializers.UUIDField(source="merged_id", help_text="Who was merged in")
    created_at = serializers.DateTimeField()


class ContactAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    identities = ContactIdentityAnswer(many=True)
    attributes = serializers.SerializerMethodField()
    # A serializer has a source of its own, which is not this field.
    source = serializers.ChoiceField(  # type: ignore[assignment]  # hides the serializer's own attribute
        choices=ContactSource.values, help_text="Where the contact came from"
    )
    created_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField(help_text="Of one who was never seen, when they were added")

    @extend_schema_field(serializers.DictField(child=ContactAttributeAnswer()))
    def get_attributes(self, row: Contact) -> Any:
        return row.attributes


class OneContactAnswer(ContactAnswer):
    merges = ContactMergeAnswer(many=True, help_text="Those that can be undone, newest first")


class ContactsAnswer(serializers.Serializer[Any]):
    contacts = ContactAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class ContactsRequest(PageRequest):
    search = serializers.CharField(
        required=False, default="", max_length=MAX_SEARCH, help_text="Part of a name, or how an address or id begins"
    )
    verified = serializers.BooleanField(required=False, allow_null=True, default=None)
    source = serializers.ChoiceField(  # type: ignore[assignment]  # as above
        choices=ContactSource.values, required=False, default=None, allow_null=True
    )
    customer = serializers.CharField(required=False, default="", max_length=MAX_CUSTOMER, help_text="Your own id")
    email = serializers.CharField(required=False, default="", max_length=MAX_VALUE)
    seen_since = serializers.DateTimeField(required=False, default=None)


class ContactEdit(RequestSerializer):
    name = serializers.CharField(required=False, allow_blank=True, max_length=MAX_NAME)
    emails = serializers.ListField(
        child=serializers.CharField(max_length=MAX_VALUE),
        max_length=MAX_IDENTITIES,
        required=False,
        help_text="All of them afterwards; verified ones stay",
    )
    phones = serializers.ListField(
        child=serializers.CharField(max_length=MAX_VALUE),
        max_length=MAX_IDENTITIES,
        required=False,
        help_text="With country code; all of them afterwards, verified ones stay",
    )
    customer = serializers.CharField(required=False, max_length=MAX_CUSTOMER, help_text="Your own id; it is added")
    attributes = serializers.DictField(
        child=serializers.JSONField(allow_null=True), required=False, help_text="Null removes one; others stay"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(gettext("Name at least one field."))
        return attrs


class MergeRequest(RequestSerializer):
    contact = serializers.UUIDField(help_text="Who is merged into this contact")


class UnmergeRequest(RequestSerializer):
    merge = serializers.UUIDField(help_text="The id of the merge")


class ContactSessionAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    deployment = serializers.UUIDField(source="deployment_id")
    owner = serializers.ChoiceField(choices=Owner.values)
    customer = serializers.CharField(source="last_customer")
    seq = serializers.IntegerField()
    preview = serializers.CharField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField(source="last_active_at")


class ContactSessionsAnswer(serializers.Serializer[Any]):
    sessions = ContactSessionAnswer(many=True)
    next = serializers.CharField(help_text="`before` of the next page; empty at the end")


class ContactConsentAnswer(serializers.Serializer[Any]):
    session = serializers.UUIDField(source="session_id")
    version = serializers.CharField()
    digest = serializers.CharField(help_text="SHA-256 of the words that were shown")
    given_at = serializers.DateTimeField()


class ContactConsentsAnswer(serializers.Serializer[Any]):
    consents = ContactConsentAnswer(many=True)


class ContactNoteRequest(RequestSerializer):
    text = serializers.CharField(max_length=MAX_NOTE)


class ContactNoteAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    author = PersonAnswer(allow_null=True)
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class ContactNotesAnswer(serializers.Serializer[Any]):
    notes = ContactNoteAnswer(many=True)


class ImportedSessionLine(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    contact = serializers.UUIDField(source="contact_id")
    system = serializers.CharField(help_text="Where it was held")
    external_id = serializers.CharField()
    subject = serializers.CharField()
    state = serializers.CharField()
    started_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)


class ImportedMessage(serializers.Serializer[Any]):
    sender = serializers.ChoiceField(choices=["customer", "team", "bot"])
    author = serializers.CharField()
    text = serializers.CharField()
    at = serializers.CharField(help_text="ISO 8601, or empty")


class ImportedSessionAnswer(ImportedSessionLine):
    messages = ImportedMessage(many=True)


class ImportedSessionsAnswer(serializers.Serializer[Any]):
    sessions = ImportedSessionLine(many=True, help_text="The newest 50")


class ForgottenAnswer(serializers.Serializer[Any]):
    memories = serializers.IntegerField(help_text="How many memories the erasure deletes")


class ErasureAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    person = serializers.CharField(source="reference", help_text="`contact:<id>` or `session:<id>`")
    state = serializers.ChoiceField(choices=ErasureState.values)
    erased = serializers.DictField(
        source="counts", child=serializers.IntegerField(), help_text="Rows of each kind, so far"
    )
    requested_at = serializers.DateTimeField(source="created_at")
    ended_at = serializers.DateTimeField(allow_null=True)


class ErasuresAnswer(serializers.Serializer[Any]):
    erasures = ErasureAnswer(many=True, help_text="The newest 50")


class KeptAnswer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    count = serializers.IntegerField()
    why = serializers.CharField()


class ReceiptOfErasure(serializers.Serializer[Any]):
    erasure = serializers.UUIDField()
    company = serializers.CharField()
    chain = serializers.UUIDField(help_text="The audit log that holds the entry")
    person = serializers.CharField()
    requested_by = serializers.CharField()
    requested_at = serializers.DateTimeField()
    erased_at = serializers.DateTimeField()
    erased = serializers.DictField(child=serializers.IntegerField())
    kept = KeptAnswer(many=True)


class SignedReceipt(serializers.Serializer[Any]):
    format = serializers.CharField()
    version = serializers.IntegerField()
    receipt = ReceiptOfErasure()
    key = serializers.CharField(help_text="The installation key that signed, Ed25519 as hex")
    signature = serializers.CharField()
    entry = serializers.DictField(help_text="The entry of the audit log that holds the digest of the receipt")
    checkpoint = serializers.DictField(
        allow_null=True, help_text="The first signed checkpoint from the entry on; null until the next one is signed"
    )


class _ContactView(ScopedView):
    capability = Capability.LOOK
    reading, writing = KeyScope.CONTACTS_READ, KeyScope.CONTACTS_WRITE

    def answer(self, row: Contact, code: int = status.HTTP_200_OK) -> Response:
        row = queries.contact(row.pk)
        row.__dict__["merges"] = queries.merges_of(row)
        response = uncached(OneContactAnswer(row).data, code)
        response["ETag"] = f'"{row.version}"'
        return response

    def may_change(self) -> None:
        services.require_editor(self.caller.user)


class Contacts(_ContactView):
    @extend_schema(
        operation_id="contacts_list",
        tags=["contacts"],
        parameters=[ContactsRequest],
        responses={200: ContactsAnswer, **_REFUSALS},
    )
    def get(self, request: Request) -> Response:
        """List contacts, the last seen first."""
        values = validated(ContactsRequest, request.query_params)
        before, limit = values.pop("before"), values.pop("limit")
        chosen = ContactFilter(
            search=values["search"],
            verified=values["verified"],
            source=ContactSource(values["source"]) if values["source"] else None,
            customer=values["customer"],
            email=values["email"],
            since=values["seen_since"],
        )
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.list_contacts(chosen, before=before, limit=limit)
            return uncached(ContactsAnswer({"contacts": rows, "next": following}).data)

    @extend_schema(
        operation_id="contacts_create",
        tags=["contacts"],
        request=ContactEdit,
        responses={201: OneContactAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        values = validated(ContactEdit, request.data)
        with tenant_scope(self.caller.tenant_id):
            self.may_change()
            source = ContactSource.TEAM if self.caller.user else ContactSource.API
            row = services.save_contact(None, actor=self.caller.actor, source=source, **values)
            return self.answer(row, status.HTTP_201_CREATED)


class OneContact(_ContactView):
    @extend_schema(operation_id="contacts_get", tags=["contacts"], responses={200: OneContactAnswer, **_REFUSALS})
    def get(self, request: Request, contact_id: UUID) -> Response:
        """Read a contact; one that was merged is answered with the contact it is shown as."""
        with tenant_scope(self.caller.tenant_id):
            return self.answer(queries.contact(contact_id))

    @extend_schema(
        operation_id="contacts_edit",
        tags=["contacts"],
        request=ContactEdit,
        parameters=[IF_MATCH],
        responses={
            200: OneContactAnswer,
            **_SAVE_REFUSALS,
            412: OpenApiResponse(description="`contact_changed`: not at the version of `If-Match`"),
        },
    )
    def patch(self, request: Request, contact_id: UUID) -> Response:
        """Change what is named: all of it or nothing."""
        values = validated(ContactEdit, request.data)
        with tenant_scope(self.caller.tenant_id):
            self.may_change()
            row = services.save_contact(
                contact_id,
                actor=self.caller.actor,
                source=ContactSource.API,
                versions=if_match_versions(request),
                **values,
            )
            return self.answer(row)


class Merge(_ContactView):
    capability = Capability.ANSWER

    @extend_schema(
        operation_id="contacts_merge",
        tags=["contacts"],
        request=MergeRequest,
        responses={
            200: OneContactAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`contact_merge_self`: the same contact; `erasure_running`"),
        },
    )
    def post(self, request: Request, contact_id: UUID) -> Response:
        """Merge another contact into this one. No access level, approval or memory of either becomes the other's."""
        values = validated(MergeRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            row = services.merge(contact_id, values["contact"], actor=self.caller.actor)
            return self.answer(row.kept)


class Unmerge(_ContactView):
    capability = Capability.ANSWER

    @extend_schema(
        operation_id="contacts_unmerge",
        tags=["contacts"],
        request=UnmergeRequest,
        responses={
            200: OneContactAnswer,
            **_REFUSALS,
            409: OpenApiResponse(description="`contact_merge_ended`: undone, or older than 30 days. `erasure_running`"),
        },
    )
    def post(self, request: Request, contact_id: UUID) -> Response:
        """Undo a merge within 30 days. The answer is the contact that is back."""
        values = validated(UnmergeRequest, request.data)
        with tenant_scope(self.caller.tenant_id):
            return self.answer(services.unmerge(contact_id, values["merge"], actor=self.caller.actor))


class _OwnersView(_ContactView):
    """For owners in a session of their own: what is handed out or erased for good has a person who answers for it."""

    capability = Capability.ADMINISTER

    def owner(self) -> str:
        if self.caller.person is None:
            raise SilasError(ErrorCode.FORBIDDEN_ROLE, gettext("Log in as an owner to do this. API keys can't."))
        return self.caller.actor

    def erase(self, find: Callable[[], Person]) -> Response:
        actor = self.owner()
        with tenant_scope(self.caller.tenant_id):
            row = erasure.request_erasure(find(), actor=actor)
            return uncached(ErasureAnswer(row).data, status.HTTP_202_ACCEPTED)


class Erase(_OwnersView):
    @extend_schema(
        operation_id="contacts_erase",
        tags=["contacts"],
        request=None,
        responses={202: ErasureAnswer, **_ERASE_REFUSALS},
    )
    def post(self, request: Request, contact_id: UUID) -> Response:
        """Erase everything about a person, for good. For owners; not with an API key. Sent twice, it is one erasure."""
        return self.erase(partial(person_of_contact, contact_id))


class Forget(_OwnersView):
    @extend_schema(
        operation_id="contacts_forget",
        tags=["contacts"],
        request=None,
        deprecated=True,
        responses={200: ForgottenAnswer, **_REFUSALS},
    )
    def post(self, request: Request, contact_id: UUID) -> Response:
        """Begin the same erasure as `contacts_erase`, which names it and leads to the receipt."""
        actor = self.owner()
        with tenant_scope(self.caller.tenant_id):
            person = person_of_contact(contact_id)
            erasure.request_erasure(person, actor=actor)
            return uncached(ForgottenAnswer({"memories": MemoryItem.objects.filter(person.in_scopes()).count()}).data)


class EraseVisitor(_OwnersView):
    @extend_schema(
        operation_id="sessions_erase",
        tags=["contacts"],
        request=None,
        responses={202: ErasureAnswer, **_ERASE_REFUSALS},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Erase everything about the visitor of a conversation, or about the contact that they were verified as."""
        return self.erase(partial(person_of_visitor, session_id))


class Erasures(_OwnersView):
    @extend_schema(operation_id="erasures_list", tags=["contacts"], responses={200: ErasuresAnswer, **_REFUSALS})
    def get(self, request: Request) -> Response:
        """List erasures of personal data, newest first."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ErasuresAnswer({"erasures": erasure.newest_erasures()}).data)


class OneErasure(_OwnersView):
    @extend_schema(operation_id="erasures_get", tags=["contacts"], responses={200: ErasureAnswer, **_REFUSALS})
    def get(self, request: Request, erasure_id: UUID) -> Response:
        with tenant_scope(self.caller.tenant_id):
            return uncached(ErasureAnswer(erasure.erasure_by_id(erasure_id)).data)


class Receipt(_OwnersView):
    @extend_schema(
        operation_id="erasures_receipt",
        tags=["contacts"],
        responses={
            200: SignedReceipt,
            **_REFUSALS,
            409: OpenApiResponse(description="`erasure_running`: it has not ended"),
        },
    )
    def get(self, request: Request, erasure_id: UUID) -> Response:
        """What was erased, and what was kept and why, signed; `tools/verify_audit.py` checks it."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(erasure.signed_receipt(erasure_id))


class Export(_OwnersView):
    @extend_schema(
        operation_id="contacts_export",
        tags=["contacts"],
        request=None,
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **_EXPORT_REFUSALS},
    )
    def post(self, request: Request, contact_id: UUID) -> FileResponse:
        """Export everything stored about a person as a ZIP, to hand to them. For owners; not with an API key."""
        actor = self.owner()
        return export_response(partial(person_of_contact, contact_id), self.caller.tenant_id, actor=actor)


class ExportVisitor(_OwnersView):
    @extend_schema(
        operation_id="sessions_export",
        tags=["contacts"],
        request=None,
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **_EXPORT_REFUSALS},
    )
    def post(self, request: Request, session_id: UUID) -> FileResponse:
        """Export everything about the visitor of a conversation, or about the contact that they were verified as."""
        actor = self.owner()
        return export_response(partial(person_of_visitor, session_id), self.caller.tenant_id, actor=actor)


class Sessions(_ContactView):
    @extend_schema(
        operation_id="contact_sessions_list",
        tags=["contacts"],
        parameters=[PageRequest],
        responses={200: ContactSessionsAnswer, **_REFUSALS},
    )
    def get(self, request: Request, contact_id: UUID) -> Response:
        """List the conversations in which the contact was verified, the last active first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            rows, following = queries.conversations_page(queries.contact(contact_id), **values)
            return uncached(ContactSessionsAnswer({"sessions": rows, "next": following}).data)


class History(_ContactView):
    @extend_schema(
        operation_id="contact_history_list", tags=["contacts"], responses={200: ImportedSessionsAnswer, **_REFUSALS}
    )
    def get(self, request: Request, contact_id: UUID) -> Response:
        """List imported conversations of the contact, newest first. No model reads them."""
        with tenant_scope(self.caller.tenant_id):
            rows = history.conversations_of(queries.contact(contact_id))
            return uncached(ImportedSessionsAnswer({"sessions": rows}).data)


class ImportedSession(_ContactView):
    @extend_schema(
        operation_id="imported_sessions_get", tags=["contacts"], responses={200: ImportedSessionAnswer, **_REFUSALS}
    )
    def get(self, request: Request, conversation_id: UUID) -> Response:
        """Read an imported conversation. What it says is untrusted."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ImportedSessionAnswer(history.conversation(conversation_id)).data)


class Memories(_ContactView):
    capability = Capability.ANSWER
    reading, writing = KeyScope.MEMORY_READ, KeyScope.MEMORY_WRITE

    @extend_schema(
        operation_id="contact_memories_list",
        tags=["contacts"],
        parameters=[PageRequest],
        responses={200: MemoriesAnswer, **_REFUSALS},
    )
    def get(self, request: Request, contact_id: UUID) -> Response:
        """List what is recalled about the contact's customer ids, newest first."""
        values = validated(PageRequest, request.query_params)
        with tenant_scope(self.caller.tenant_id):
            customers = tuple(queries.customers_of(queries.contact(contact_id)))
            rows, following = list_memories(MemoryFilter(customers=customers), **values) if customers else ([], "")
            return uncached(MemoriesAnswer({"memories": rows, "next": following}).data)


class Consents(_ContactView):
    @extend_schema(
        operation_id="contact_consents_list", tags=["contacts"], responses={200: ContactConsentsAnswer, **_REFUSALS}
    )
    def get(self, request: Request, contact_id: UUID) -> Response:
        """List which consents were given in the contact's conversations, newest first."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ContactConsentsAnswer({"consents": queries.consents_of(queries.contact(contact_id))}).data)


class Notes(_ContactView):
    @extend_schema(
        operation_id="contact_notes_list", tags=["contacts"], responses={200: ContactNotesAnswer, **_REFUSALS}
    )
    def get(self, request: Request, contact_id: UUID) -> Response:
        """List private notes, newest first."""
        with tenant_scope(self.caller.tenant_id):
            return uncached(ContactNotesAnswer({"notes": queries.notes_of(queries.contact(contact_id))}).data)

    @extend_schema(
        operation_id="contact_notes_create",
        tags=["contacts"],
        request=ContactNoteRequest,
        responses={201: ContactNoteAnswer, **_SAVE_REFUSALS},
    )
    def post(self, request: Request, contact_id: UUID) -> Response:
        """Write a note for the team; no visitor and no model reads it."""
        text = validated(ContactNoteRequest, request.data)["text"]
        with tenant_scope(self.caller.tenant_id):
            self.may_change()
            note = services.add_note(contact_id, text, actor=self.caller.actor, author=self.caller.user)
            return uncached(ContactNoteAnswer(note).data, status.HTTP_201_CREATED)
