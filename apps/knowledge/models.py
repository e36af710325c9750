"""Collections of documents, every version of each, the chunks of the newest, and submissions on their way in.

Always true of the rows: a version's text never changes (a trigger refuses), so that a citation can be opened for ever;
chunks exist of a document's newest version only. The models keep the label `memory`, under which their tables and
migrations were made.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual
from pgvector.django import HnswIndex, VectorField

from apps.knowledge.enums import IntakeKind, IntakeState
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel
from llm.embedding import DIMENSIONS


def _only_english() -> list[str]:
    return ["english"]


class Collection(TenantModel):
    """Documents that are readable from one access level on.

    `chunk_count`, `common_words` with the number of chunks that contain each, and the PostgreSQL text search
    configurations of the documents guide the search; outdated ones make it less sharp, never wrong.
    """

    name = models.SlugField(max_length=60)
    title = models.CharField(max_length=120, blank=True)
    min_level = models.CharField(
        max_length=40, default="public", help_text=_("The lowest access level that may read it")
    )
    created_at = models.DateTimeField(db_default=Now())
    chunk_count = models.PositiveIntegerField(default=0, editable=False)
    common_words = ArrayField(models.TextField(), default=list, editable=False)
    common_counts = ArrayField(models.PositiveIntegerField(), default=list, db_default=[], editable=False)
    search_configs = ArrayField(models.TextField(), default=_only_english, db_default=["english"], editable=False)

    class Meta(TenantModel.Meta):
        app_label = "memory"
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="memory_collection_once"),
            models.CheckConstraint(condition=~Q(min_level=""), name="memory_collection_has_level"),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class Document(TenantModel):
    """One source, followed through its versions.

    `source_ref` is where it came from: a relative path, or path#id; `indexed_with` names the chunking and the embedding
    of its chunks, `search_config` the PostgreSQL text search configuration of its language.
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents", db_index=False)
    source_ref = models.CharField(max_length=700)
    title = models.CharField(max_length=300)
    url = models.CharField(max_length=2000, blank=True)
    indexed_with = models.CharField(max_length=80, blank=True)
    search_config = models.CharField(max_length=20, default="english", db_default="english")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        app_label = "memory"
        ordering: ClassVar = ["source_ref"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["collection", "source_ref"], name="memory_document_once")
        ]

    def __str__(self) -> str:
        return self.title


class DocumentVersion(TenantModel):
    """An immutable version of a document's text. `sha256` is of its UTF-8; the highest `number` is the newest."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        app_label = "memory"
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "number"], name="memory_version_once")]

    document_id: UUID


class Chunk(TenantModel):
    """One piece of a document's newest version; `start` and `end` are byte offsets into that version's UTF-8.

    `words` are context (weight A) and text (B) by the document's text search configuration.
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+", db_index=False)
    version = models.ForeignKey(DocumentVersion, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    context = models.CharField(max_length=300, blank=True)
    text = models.TextField()
    embedding = VectorField(dimensions=DIMENSIONS, null=True)
    words = SearchVectorField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "memory"
        ordering: ClassVar = ["version", "ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["version", "ordinal"], name="memory_chunk_once"),
            models.CheckConstraint(condition=Q(start__lt=F("end")), name="memory_chunk_not_empty"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "collection"], name="memory_chunk_by_collection"),
            GinIndex(fields=["words"], name="memory_chunk_words", fastupdate=False),
            HnswIndex(fields=["embedding"], name="memory_chunk_near", opclasses=["vector_cosine_ops"]),
        ]


class Intake(TenantModel):
    """A submission to the knowledge and its progress: a file, a text, a website or a repeated reading.

    Its bytes are deleted once it is read: a document's text is kept in its versions. `name` is what the submitter
    called it, `reference` what its document is known by; `done` of `total` pages are read, `stored` is how many
    documents came of it. `once` makes a form that is sent twice one row.
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=IntakeKind.choices)
    name = models.CharField(max_length=300)
    reference = models.CharField(max_length=700)
    content: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True)
    document_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    state = models.CharField(max_length=10, choices=IntakeState.choices, default=IntakeState.WAITING)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    stored = models.PositiveIntegerField(default=0)
    problems: models.JSONField[list[list[str]], list[list[str]]] = models.JSONField(default=list)
    by = models.CharField(max_length=60)
    once = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now())
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    collection_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "memory"
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "once"], name="memory_intake_once")]

    def __str__(self) -> str:
        return self.name


class ReadPart(TenantModel):
    """A page of a website, or a file (empty `url`), that a worker parsed and the trusted worker has not stored yet.

    `found` is JSON of documents and problems, validated again before it is stored. Workers may only insert rows.
    """

    LONGEST = 12_000_000

    intake = models.ForeignKey(Intake, on_delete=models.CASCADE, related_name="+", db_index=False)
    url = models.CharField(max_length=500, blank=True)
    total = models.PositiveIntegerField()
    found = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        app_label = "memory"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["intake", "url"], name="memory_readpart_once"),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length("found"), 12_000_000), name="memory_readpart_is_bounded"
            ),
        ]
