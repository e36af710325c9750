"""The people a company talks to, with what they are known by, and the record of merges.

Nothing here gives anybody access: levels, memories and approvals hang on the verified customer of a conversation, and
no room that decides imports this one. A merge changes what staff see together, and no rights.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, TypedDict
from uuid import UUID

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q

from apps.contacts.enums import ContactSource, ErasureState, IdentityKind, Proof, identity_kinds
from kernel.tenancy import TenantModel

Value = str | int | float | bool


class Attribute(TypedDict):
    """`proved`: the company's own server or team said so, and not the page of a visitor."""

    value: Value
    proved: bool


class Contact(TenantModel):
    """One person. `last_seen_at`: when they last were in a conversation, or else when they were added. `merged_into`:
    they are shown as this contact now. `version` rises with every edit."""

    name = models.CharField(max_length=120, blank=True)
    attributes: models.JSONField[dict[str, Attribute], dict[str, Attribute]] = models.JSONField(default=dict)
    source = models.CharField(max_length=8, choices=ContactSource.choices)
    version = models.PositiveIntegerField(default=1)
    merged_into = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    merged_into_id: UUID | None

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["tenant", "-last_seen_at"], condition=Q(merged_into=None), name="contact_by_activity")
        ]


class ContactIdentity(TenantModel):
    """What a contact is known by. A proved one, and a customer's id, belongs to one contact of the company."""

    contact = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="identities")
    kind = models.CharField(max_length=10, choices=identity_kinds)
    value = models.CharField(max_length=254)
    proved_by = models.CharField(max_length=8, choices=Proof.choices, blank=True, default=Proof.NONE)
    proved_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    contact_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name_plural = "contact identities"
        ordering: ClassVar = ["kind", "created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["contact", "kind", "value"], name="contact_identity_once"),
            models.UniqueConstraint(
                fields=["tenant", "kind", "value"],
                condition=Q(kind__in=(IdentityKind.CUSTOMER, IdentityKind.IMPORTED)) | Q(proved_at__isnull=False),
                name="contact_identity_is_ones",
            ),
            models.CheckConstraint(
                condition=Q(proved_by="", proved_at=None) | (~Q(proved_by="") & Q(proved_at__isnull=False)),
                name="contact_identity_proof_has_time",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "kind", "value"], name="contact_identity_by_value"),
            models.Index(fields=["contact"], condition=Q(proved_at__isnull=False), name="contact_identity_proved"),
        ]


class ContactMerge(TenantModel):
    """`merged` is shown as `kept`. `moved`: the ids of identities and notes that came over, and the names of the
    attributes that were added."""

    kept = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="merges")
    merged = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="+")
    moved: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    by = models.CharField(max_length=80)
    created_at = models.DateTimeField()
    undone_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    kept_id: UUID
    merged_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["merged"], condition=Q(undone_at=None), name="contact_merged_once"),
            models.CheckConstraint(condition=~Q(kept=models.F("merged")), name="contact_merge_of_two"),
        ]


class ContactNote(TenantModel):
    """What staff tell each other about a contact. No visitor and no model reads it."""

    contact = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    text = models.TextField()
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.CheckConstraint(condition=~Q(text=""), name="contact_note_says_something")]


class ImportedConversation(TenantModel):
    """A conversation that was held in another system: a history for staff. No model reads it, and nothing in it is
    trusted. `messages`: `[{sender, author, text, at}]`, `text` all of their words to search in."""

    contact = models.ForeignKey(Contact, on_delete=models.CASCADE, related_name="+")
    system = models.CharField(max_length=10)
    external_id = models.CharField(max_length=100)
    subject = models.CharField(max_length=254, blank=True)
    state = models.CharField(max_length=254, blank=True)
    messages: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(default=list)
    text = models.TextField(blank=True)
    started_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    last_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    imported_at = models.DateTimeField()

    contact_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "system", "external_id"], name="imported_conversation_once")
        ]
        indexes: ClassVar = [
            GinIndex(SearchVector("text", config="simple"), name="imported_conversation_words"),
            models.Index(fields=["contact", "-last_at"], name="imported_by_contact"),
        ]


class Erasure(TenantModel):
    """The erasure of one person's data (`apps.contacts.erasure`). A person has one that has not ended.

    `reference`: `contact:<id>` or `session:<id>`. `person`: what belongs to them, as it was when the erasure was
    requested, and empty once it has ended. `counts`: how many rows of each kind were erased so far. `receipt`: what was
    erased and kept; its digest is in the audit entry `entry_id`.
    """

    reference = models.CharField(max_length=80)
    state = models.CharField(max_length=8, choices=ErasureState.choices, default=ErasureState.RUNNING)
    person: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    counts: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(default=dict)
    receipt: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)
    entry_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    requested_by = models.CharField(max_length=80)
    created_at = models.DateTimeField()
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "reference"], condition=Q(ended_at=None), name="erasure_once_a_person"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, receipt__isnull=True, entry_id__isnull=True)
                | Q(ended_at__isnull=False, receipt__isnull=False, entry_id__isnull=False, person={}),
                name="erasure_ends_with_a_receipt",
            ),
        ]
