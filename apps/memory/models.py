"""What may be recalled: memories. A memory has a scope and keeps it, its taint never drops, what is raw stays as it was
said, and nothing external is ever trusted (constraints and a trigger)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import F, Q, Value
from pgvector.django import HalfVectorField, VectorField

from apps.memory.enums import (
    ArchiveReason,
    EntityKind,
    MergeReason,
    Predicate,
    QuestionKind,
    QuestionState,
    SourceKind,
    Tier,
    Trust,
)
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import TenantModel
from llm.embedding import DIMENSIONS
from llm.enums import MemoryType


def may_be_recalled(prefix: str = "", *, at: datetime | None = None) -> Q:
    """The condition of memories that may be recalled now, or `at` a time: neither archived nor expired. `prefix` leads
    to them."""
    lasts = Q(**{f"{prefix}valid_until__isnull": True}) | Q(**{f"{prefix}valid_until__gt": at or now()})
    return lasts & Q(**{f"{prefix}archived_at__isnull": True})


class MemoryItem(TenantModel):
    """A memory of a conversation, a customer or the company (contract silas 10).

    `scope` says whose it is (`schemas.Scope`); every read names one. `reference` says what it came from and is unique
    in its scope. `links` are `{"to": id, "type": word}`. `marked`: its author had read instructions to the assistant,
    so a turn that recalls it is marked too. `events`: when else it was said (`rules.Event`); its own row is
    one more, unless it was promoted. An archived memory is not recalled; `used_at` and `uses` say when it last was, and
    in how many hours. `pinned`: a member wants it kept; it is not archived, not merged, and does not expire.
    `revisions` are former texts that members corrected, oldest first: `{"text", "at", "by"}` with an ISO 8601 time and
    an actor. `read_at`: when entities and relations were read from its content; None until then.
    """

    scope = models.CharField(max_length=140)
    content = models.TextField()
    memory_type = models.CharField(max_length=12, choices=[(each.value, each.value) for each in MemoryType])
    tier = models.CharField(max_length=16, choices=Tier.choices, default=Tier.ACTIVE)
    trust = models.CharField(max_length=16, choices=Trust.choices, default=Trust.WORKING)
    taint = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    source_kind = models.CharField(max_length=20, choices=SourceKind.choices)
    reference = models.CharField(max_length=80)
    session_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    valid_until = models.DateTimeField(null=True)
    tags = ArrayField(models.CharField(max_length=60), default=list)
    entity_refs = ArrayField(models.CharField(max_length=120), default=list)
    links: models.JSONField[list[Any], list[Any]] = models.JSONField(default=list)
    marked = models.BooleanField(default=False, db_default=False)
    events = ArrayField(models.CharField(max_length=160), default=list, db_default=[])
    used_at = models.DateTimeField(null=True)
    uses = models.PositiveIntegerField(default=0, db_default=0)
    pinned = models.BooleanField(default=False, db_default=False)
    archived_at = models.DateTimeField(null=True)
    archive_reason = models.CharField(
        max_length=16, choices=ArchiveReason.choices, blank=True, default="", db_default=""
    )
    revisions: models.JSONField[list[Any], list[Any]] = models.JSONField(
        default=list, db_default=Value([], models.JSONField())
    )
    read_at = models.DateTimeField(null=True)
    embedding = VectorField(dimensions=DIMENSIONS, null=True)
    words = models.GeneratedField(
        expression=SearchVector("content", config="english"), output_field=SearchVectorField(), db_persist=True
    )

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "scope", "reference"], name="memory_item_once"),
            models.CheckConstraint(
                condition=Q(scope__regex=r"^(conversation|customer|tenant):."), name="memory_item_has_scope"
            ),
            models.CheckConstraint(condition=~Q(content="") & ~Q(reference=""), name="memory_item_says_something"),
            models.CheckConstraint(
                condition=Q(trust=Trust.WORKING) | ~Q(taint=Taint.EXTERNAL.value),
                name="memory_nothing_external_trusted",
            ),
            models.CheckConstraint(
                condition=~Q(scope__startswith="tenant:") | ~Q(taint=Taint.EXTERNAL.value),
                name="memory_nothing_external_for_all",
            ),
            models.CheckConstraint(
                condition=Q(archived_at__isnull=True, archive_reason="")
                | Q(archived_at__isnull=False, pinned=False) & ~Q(archive_reason=""),
                name="memory_archived_for_a_reason",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "scope", "tier", "-created_at"], name="memory_item_by_scope"),
            models.Index(fields=["tenant", "valid_until"], name="memory_item_by_end"),
            models.Index(fields=["tenant", "created_at"], name="memory_item_by_age"),
            models.Index(fields=["tenant"], name="memory_item_unread", condition=Q(tier=Tier.ACTIVE, read_at=None)),
        ]


class MemoryVector(TenantModel):
    """A memory's vector by a provider's model; `version` names model and dimensions. The database deletes it with its
    memory, and when the memory's content changes."""

    memory = models.ForeignKey(
        MemoryItem, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    version = models.CharField(max_length=130)
    embedding = HalfVectorField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["memory", "version"], name="memory_vector_once")]


class MemoryEntity(TenantModel):
    """A person, number, thing or event that memories of one scope speak of (spec 6.3).

    `name` is what its spellings have in common (`extraction.canonical`), `aliases` are the spellings. The database
    deletes it with the last relation that names it.
    """

    scope = models.CharField(max_length=140)
    kind = models.CharField(max_length=12, choices=EntityKind.choices)
    name = models.CharField(max_length=120)
    aliases = ArrayField(models.CharField(max_length=120), default=list)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name_plural = "memory entities"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "scope", "name"], name="memory_entity_once"),
            models.CheckConstraint(condition=~Q(name=""), name="memory_entity_has_name"),
        ]

    def __str__(self) -> str:
        return self.aliases[0] if self.aliases else self.name


class MemoryRelation(TenantModel):
    """What a memory says of an entity: `subject` `predicate` `object`, or `value` where that is no entity.

    True from `valid_from` until `valid_to` (not included), as far as its own memory says; a later fact of the same
    subject may end it sooner (`facts.timeline`). It is as little trusted as its memory, in whose scope its entities
    are, and the database deletes it with its memory (`sql/graph.py`). `confidence` in per cent: how surely it was read,
    not whether it is true.
    """

    memory = models.ForeignKey(MemoryItem, on_delete=models.DO_NOTHING, db_constraint=False, related_name="relations")
    subject = models.ForeignKey(MemoryEntity, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+")
    predicate = models.CharField(max_length=12, choices=Predicate.choices)
    object = models.ForeignKey(
        MemoryEntity, on_delete=models.DO_NOTHING, db_constraint=False, null=True, related_name="+"
    )
    value = models.CharField(max_length=200)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(null=True)
    confidence = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(predicate=Predicate.MENTIONED, object=None, value="")
                | (~Q(predicate=Predicate.MENTIONED) & Q(object=None) & ~Q(value=""))
                | (~Q(predicate=Predicate.MENTIONED) & ~Q(object=None) & Q(value="")),
                name="memory_relation_says_one_thing",
            ),
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gte=F("valid_from")), name="memory_relation_ends_later"
            ),
            models.CheckConstraint(condition=Q(confidence__lte=100), name="memory_relation_per_cent"),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "valid_from"], name="memory_relation_by_time")]


class MemoryConsolidation(TenantModel):
    """One memory that was merged into another and deleted, promoted, or archived for another (spec 6.4).

    Holds ids only, no text, so that it outlives a forgotten visitor without saying anything about them. `taint_before`
    is the former memory's, `taint_after` the kept one's; the types likewise, "raw" for what was kept as said. They are
    blank for duplicates, which are merged inside one type.
    """

    merged_id = models.UUIDField()
    kept_id = models.UUIDField()
    reason = models.CharField(max_length=20, choices=MergeReason.choices)
    taint_before = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    taint_after = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    type_before = models.CharField(max_length=12, blank=True, default="", db_default="")
    type_after = models.CharField(max_length=12, blank=True, default="", db_default="")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "merged_id"], name="memory_merged_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "created_at"], name="memory_merged_by_age")]


class MemoryQuestion(TenantModel):
    """A question to a person about one memory or two (spec 6.4). Holds ids only; each is asked once.

    `other_id` is the memory itself where only one is asked about. `kept_id` is what the answer kept: the chosen memory,
    or the profile memory that was made.
    """

    kind = models.CharField(max_length=16, choices=QuestionKind.choices)
    state = models.CharField(max_length=12, choices=QuestionState.choices, default=QuestionState.OPEN)
    memory_id = models.UUIDField()
    other_id = models.UUIDField()
    kept_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    decided_by = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "kind", "memory_id", "other_id"], name="memory_asked_once")
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "created_at"], name="memory_question_by_age")]
