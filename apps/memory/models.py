"""What may be recalled? Collections of documents; every version of a document; the chunks of the newest to search in.

Always true of the rows: a version's text never changes (a trigger refuses), so that a citation can be opened for ever;
chunks exist of a document's newest version only, because they are an index and not a record.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from pgvector.django import HnswIndex, VectorField

from apps.memory.embedding import DIMENSIONS
from kernel.tenancy import TenantModel


class Collection(TenantModel):
    """Documents that are read at one access level. `chunk_count` and `common_words` guide the search."""

    name = models.SlugField(max_length=60)
    title = models.CharField(max_length=120, blank=True)
    min_level = models.CharField(max_length=40, default="public", help_text="The lowest access level that may read it")
    created_at = models.DateTimeField(db_default=Now())
    chunk_count = models.PositiveIntegerField(default=0, editable=False)
    common_words = ArrayField(models.TextField(), default=list, editable=False)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "name"], name="memory_collection_once"),
            models.CheckConstraint(condition=~Q(min_level=""), name="memory_collection_has_level"),
        ]

    def __str__(self) -> str:
        return self.title or self.name


class Document(TenantModel):
    """One source, followed through its versions. `source_ref` is where it came from: a relative path, or path#id;
    `indexed_with` names the chunking and the embedding that its chunks were made with."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents", db_index=False)
    source_ref = models.CharField(max_length=700)
    title = models.CharField(max_length=300)
    url = models.CharField(max_length=2000, blank=True)
    indexed_with = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["source_ref"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["collection", "source_ref"], name="memory_document_once")
        ]

    def __str__(self) -> str:
        return self.title


class DocumentVersion(TenantModel):
    """The text as it was read once, for ever. `sha256` is of its UTF-8; the highest `number` is the newest."""

    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["document", "number"], name="memory_version_once")]

    document_id: UUID


class Chunk(TenantModel):
    """One piece of a document's newest version; `start` and `end` are byte offsets into that version's UTF-8."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+", db_index=False)
    version = models.ForeignKey(DocumentVersion, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    ordinal = models.PositiveIntegerField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    context = models.CharField(max_length=300, blank=True)
    text = models.TextField()
    embedding = VectorField(dimensions=DIMENSIONS, null=True)
    words = models.GeneratedField(
        expression=SearchVector("context", weight="A", config="english")
        + SearchVector("text", weight="B", config="english"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    class Meta(TenantModel.Meta):
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
