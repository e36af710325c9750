"""Collections of documents, every version of each, the chunks of the newest, submissions, sources, and gaps.

Always true of the rows: a version's text never changes (a trigger refuses), so that a citation can be opened for ever;
chunks exist of a document's newest version only. The models of documents keep the label `memory`, under which their
tables and migrations were made.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Cast, Length, Now
from django.db.models.lookups import LessThanOrEqual
from pgvector.django import HalfVectorField, HnswIndex, VectorField

from apps.knowledge.enums import WITHOUT_ACCOUNT, GapReason, GapStatus, IntakeKind, IntakeState, SourceKind
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel
from llm.embedding import DIMENSIONS
from llm.provider_embeddings import DIMENSIONS as PROVIDER_DIMENSIONS


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
    of its chunks, `search_config` the PostgreSQL text search configuration of its language. `source_id` is the
    `KnowledgeSource` that brought it, and `source_version` how that source marked the version that was read last.
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="documents", db_index=False)
    source_ref = models.CharField(max_length=700)
    title = models.CharField(max_length=300)
    url = models.CharField(max_length=2000, blank=True)
    indexed_with = models.CharField(max_length=80, blank=True)
    search_config = models.CharField(max_length=20, default="english", db_default="english")
    source_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    source_version = models.CharField(max_length=200, blank=True, default="", db_default="")
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


class SearchSettings(TenantModel):
    """How a company searches beyond the built-in way; without a row it does not.

    `deployment`: whose provider keys are used and whose budget pays. `embedding_model` is a provider's, "" for the
    built-in one only; its vectors have `dimensions` numbers. The vectors of `former_model` answer too until those of
    the present one are complete: `embedded` of `total` passages and memories have one. `problem` is the code of why the
    provider was of no use last, "" while it is. `reranker` is a chat model that orders what was found, "" for none.
    """

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    embedding_model = models.CharField(max_length=120, blank=True)
    dimensions = models.PositiveSmallIntegerField(default=0)
    former_model = models.CharField(max_length=120, blank=True)
    former_dimensions = models.PositiveSmallIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    problem = models.CharField(max_length=60, blank=True)
    problem_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    reranker = models.CharField(max_length=120, blank=True)
    updated_at = models.DateTimeField(db_default=Now())

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        verbose_name = _("search settings")
        verbose_name_plural = _("search settings")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="knowledge_search_settings_once"),
            models.CheckConstraint(
                condition=Q(embedding_model="", dimensions=0)
                | (~Q(embedding_model="") & Q(dimensions__in=PROVIDER_DIMENSIONS)),
                name="knowledge_search_dimensions",
            ),
        ]

    def __str__(self) -> str:
        return "Search settings"


class ChunkVector(TenantModel):
    """A chunk's vector by a provider's model; `version` names model and dimensions. The database deletes
    it with its chunk."""

    chunk = models.ForeignKey(
        Chunk, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    collection_id = models.UUIDField()
    version = models.CharField(max_length=130)
    dimensions = models.PositiveSmallIntegerField()
    embedding = HalfVectorField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["chunk", "version"], name="knowledge_vector_once")]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "version", "collection_id"], name="knowledge_vector_by_version"),
            *(
                HnswIndex(
                    OpClass(Cast("embedding", HalfVectorField(dimensions=size)), name="halfvec_cosine_ops"),
                    condition=Q(dimensions=size),
                    name=f"knowledge_vector_near_{size}",
                )
                for size in PROVIDER_DIMENSIONS
            ),
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


class KnowledgeSource(TenantModel):
    """A place outside that is read again on a schedule: a website, a folder, or what an account of a service shows.

    `location` says what of it is read: the address of a website's start page, a folder, a bucket and prefix, a space…
    `connection_id` is the account. `intake_id` is the run in progress or the last one, `dry_run` whether it stores
    nothing. `report` is what that run found (`sources.Report`).
    """

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=SourceKind.choices, default=SourceKind.WEBSITE)
    connection_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    location = models.CharField(max_length=500, blank=True)
    every_hours = models.PositiveIntegerField(default=24)
    enabled = models.BooleanField(default=True)
    next_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    intake_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    dry_run = models.BooleanField(default=False)
    report: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    by = models.CharField(max_length=60)
    created_at = models.DateTimeField(db_default=Now())

    collection_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["kind", "location", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["collection", "kind", "connection_id", "location"],
                name="knowledge_source_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=Q(every_hours__range=(1, 720)), name="knowledge_source_interval"),
            models.CheckConstraint(
                condition=Q(kind__in=WITHOUT_ACCOUNT, connection_id=None)
                | (~Q(kind__in=WITHOUT_ACCOUNT) & Q(connection_id__isnull=False)),
                name="knowledge_source_has_account",
            ),
        ]

    def __str__(self) -> str:
        return self.location or self.get_kind_display()


class GapTopic(TenantModel):
    """Questions of visitors that are alike and that the knowledge does not answer.

    `question` is the wording of the earliest one. `visitors` is how many different visitors asked since the last answer
    was published. `centroid` is the unit mean of the questions' vectors, each visitor counted once. `title` and
    `answer` are what a member wrote; while the status is `drafted` they wait for approval on the card `card_id`.
    """

    question = models.CharField(max_length=600)
    centroid = VectorField(dimensions=DIMENSIONS)
    visitors = models.PositiveIntegerField(default=0)
    status = models.CharField(max_length=10, choices=GapStatus.choices, default=GapStatus.OPEN)
    collection = models.ForeignKey(Collection, on_delete=models.SET_NULL, null=True, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    answer = models.TextField(blank=True)
    card_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    answered_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    collection_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-visitors", "-last_at", "pk"]
        indexes: ClassVar = [models.Index(fields=["tenant", "status", "-visitors"], name="knowledge_gap_by_status")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(status=GapStatus.DRAFTED) | Q(card_id__isnull=False), name="knowledge_gap_draft_has_card"
            )
        ]

    def __str__(self) -> str:
        return self.question


class GapQuestion(TenantModel):
    """A visitor's question that was not answered, or whose conversation was badly rated. Scrubbed; external text.

    `asker` is a hash of the customer, or of the conversation of a visitor who is not known. `topic` is None until the
    question is clustered.
    """

    topic = models.ForeignKey(GapTopic, on_delete=models.CASCADE, null=True, related_name="questions")
    session_id = models.UUIDField()
    asker = models.CharField(max_length=64)
    text = models.CharField(max_length=600)
    digest = models.CharField(max_length=64)
    reason = models.CharField(max_length=12, choices=GapReason.choices)
    asked_at = models.DateTimeField()

    topic_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-asked_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session_id", "digest"], name="knowledge_gap_question_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "asked_at"], condition=Q(topic=None), name="knowledge_gap_unclustered")
        ]

    def __str__(self) -> str:
        return self.text
