"""What visitors do beside talking, and what a deployment offers of it: files, a pre-chat form and consent, several
conversations, the transcript by e-mail, a rating.

Without a row of offers nothing is offered. What visitors type here is as external as their messages, and proves no
identity.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator
from django.db import models
from django.db.models import Q

from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession
from apps.visitors.enums import QuestionKind, RatingScale, TranscriptState
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

MOST_MEGABYTES, MOST_FILES = 25, 100


class VisitorOffers(TenantModel):
    """What a deployment offers its visitors beside talking."""

    deployment = models.OneToOneField("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    pictures = models.BooleanField(_("take pictures"), default=False, help_text=_("PNG, JPEG, WebP and GIF"))
    pdfs = models.BooleanField(_("take PDF files"), default=False)
    texts = models.BooleanField(_("take text files"), default=False, help_text=_("TXT and CSV"))
    office = models.BooleanField(_("take Office files"), default=False, help_text=_("DOCX and XLSX without macros"))
    file_megabytes = models.PositiveSmallIntegerField(
        _("largest file"),
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_MEGABYTES)],
        help_text=_("Megabytes, at most {most_megabytes}").format(most_megabytes=MOST_MEGABYTES),
    )
    files_each = models.PositiveSmallIntegerField(
        _("files in a conversation"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_FILES)],
        help_text=_("At most {most_files}").format(most_files=MOST_FILES),
    )
    consent_text = models.TextField(
        _("consent"),
        max_length=2000,
        blank=True,
        help_text=_("What a visitor agrees to before anything is sent or stored"),
    )
    consent_link = models.CharField(
        _("link for more"), max_length=500, blank=True, validators=[URLValidator(["https", "http"])]
    )
    consent_version = models.SlugField(
        _("version of the consent"),
        max_length=40,
        blank=True,
        help_text=_("With a new version, every visitor is asked again"),
    )
    conversations = models.BooleanField(
        _("several conversations"), default=False, help_text=_("Visitors find their earlier ones and begin new ones")
    )
    transcripts = models.BooleanField(_("transcript by e-mail"), default=False)
    read_receipts = models.BooleanField(
        _("read receipts"),
        default=False,
        db_default=False,
        help_text=_("Visitors see when the person who answers has read their messages"),
    )
    rating = models.CharField(_("rating at the end"), max_length=6, choices=RatingScale.choices, blank=True)

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        verbose_name = _("offer to visitors")
        verbose_name_plural = _("offers to visitors")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(file_megabytes__range=(1, MOST_MEGABYTES), files_each__range=(1, MOST_FILES)),
                name="offers_within_ceilings",
            ),
            models.CheckConstraint(
                condition=Q(consent_text="", consent_version="") | (~Q(consent_text="") & ~Q(consent_version="")),
                name="offers_consent_has_version",
            ),
        ]

    def __str__(self) -> str:
        return "Offers to visitors"


class FormQuestion(TenantModel):
    """What is asked before the first word, in order."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    order = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=8, choices=QuestionKind.choices)
    label = models.CharField(max_length=120)
    required = models.BooleanField(default=False)
    choices = models.TextField(max_length=1000, blank=True, help_text=_("For a choice: one a line"))

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        ordering: ClassVar = ["order", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "order"], name="form_question_in_order"),
            models.CheckConstraint(
                condition=Q(kind=QuestionKind.CHOICE) & ~Q(choices="") | ~Q(kind=QuestionKind.CHOICE) & Q(choices=""),
                name="form_choice_has_choices",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def options(self) -> list[str]:
        return [line.strip() for line in self.choices.splitlines() if line.strip()]


class FormAnswers(TenantModel):
    """A conversation's form as it was sent: `[{question, label, kind, value}]`. It does not verify identity."""

    session = models.OneToOneField(ChatSession, on_delete=models.PROTECT, related_name="+")
    answers: models.JSONField[list[dict[str, str]], list[dict[str, str]]] = models.JSONField(default=list)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"


class Consent(TenantModel):
    """Which version was agreed to, when; `digest` of the words that were shown."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="+")
    version = models.SlugField(max_length=40)
    digest = models.CharField(max_length=64)
    given_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "version"], name="consent_once")]


class VisitorFile(TenantModel):
    """A file that a visitor sent, or with the sender `human` one of staff.

    Its bytes are stored as `stored_name` (`file_storage`), `digest` is their SHA-256 and
    `seq` its place in the conversation. `text` is what was read of a PDF or office file, or `problem` says why nothing
    was (a `ProblemCode`)."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="+")
    seq = models.PositiveBigIntegerField()
    sender = models.CharField(max_length=7, choices=Sender.choices, default=Sender.VISITOR)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=8)
    size = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64)
    stored_name = models.CharField(max_length=120)
    text = models.TextField(blank=True, default="")
    problem = models.CharField(max_length=24, blank=True, default="")
    client_id = models.CharField(max_length=64)
    created_at = models.DateTimeField()

    session_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        indexes: ClassVar = [models.Index(fields=["tenant", "stored_name"], name="file_by_stored_name")]
        constraints: ClassVar = [models.UniqueConstraint(fields=["session", "client_id"], name="file_client_id_once")]


class TranscriptRequest(TenantModel):
    """What was said up to `until_seq` is sent to an address, which is not kept once it was sent or given up."""

    session = models.ForeignKey(ChatSession, on_delete=models.PROTECT, related_name="+")
    client_id = models.CharField(max_length=64)
    address = models.EmailField(max_length=254, blank=True)
    until_seq = models.PositiveBigIntegerField()
    state = models.CharField(max_length=8, choices=TranscriptState.choices, default=TranscriptState.OWED)
    attempts = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField()
    settled_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    session_id: UUID

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "client_id"], name="transcript_client_id_once"),
            models.CheckConstraint(
                condition=Q(state=TranscriptState.OWED) & ~Q(address="")
                | ~Q(state=TranscriptState.OWED) & Q(address=""),
                name="transcript_address_is_let_go",
            ),
        ]


class Rating(TenantModel):
    """What a visitor thought of their conversation: 1 to 5; of thumbs 1 is down and 5 is up."""

    session = models.OneToOneField(ChatSession, on_delete=models.PROTECT, related_name="+")
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    scale = models.CharField(max_length=6, choices=RatingScale.choices)
    score = models.PositiveSmallIntegerField()
    comment = models.TextField(max_length=1000, blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        indexes: ClassVar = [models.Index(fields=["deployment", "created_at"], name="rating_by_time")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(scale=RatingScale.STARS, score__range=(1, 5))
                | Q(scale=RatingScale.THUMBS, score__in=[1, 5]),
                name="rating_is_on_its_scale",
            )
        ]
