"""Models of tenants, users, memberships, deployments and keys.

`Tenant` and `User` have no tenant; everything else belongs to one tenant and is covered by row-level security. A
deployment is one chatbot on one website; its public key identifies its tenant, as does the hash of an API key.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, TypedDict
from uuid import UUID, uuid4

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse

from apps.tenants.enums import Closed, IdentityAlgorithm, PictureKind, Role
from apps.tenants.hours import Schedule
from kernel.clock import now
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel
from kernel.timezones import UTC_NAME, first_known_timezone, validate_timezone
from llm.keys import ProviderKeys
from llm.models import GROUNDED


class Tenant(models.Model):
    """A customer company of the platform, or the copy of one in which simulations run (`is_simulated`).

    `closed`: nothing of it is served, see `kernel.tenancy.refuse_closed_companies`."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=60, default="Europe/London", validators=[validate_timezone])
    second_factor_required = models.BooleanField(
        default=False, help_text=_("Do members need a second factor before they see anything?")
    )
    apps_register_themselves = models.BooleanField(
        default=False, db_default=False, help_text=_("May MCP clients register themselves as apps?")
    )
    is_simulated = models.BooleanField(default=False, db_default=False, editable=False)
    closed = models.CharField(
        max_length=8,
        choices=Closed.choices,
        blank=True,
        default=Closed.NO,
        db_default=Closed.NO,
        editable=False,
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name


class EmailUserManager(BaseUserManager["User"]):
    """Creates users by e-mail address; the address is the login."""

    def create_user(self, email: str, password: str | None = None, **extra: object) -> User:
        address = self.normalize_email(email).lower()
        user = self.model(email=address, username=address, **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: object) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """A person who can log in. Their rights come from memberships only."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    email = models.EmailField(_("e-mail address"), unique=True)
    language = models.CharField(
        max_length=12,
        blank=True,
        default="",
        db_default="",
        help_text=_("Code of the person's language; empty for the browser's"),
    )
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[EmailUserManager] = EmailUserManager()  # type: ignore[assignment]  # ours has no usernames

    # Actor that acts on the user's behalf, such as an API key for its owner; never stored.
    acts_as = ""

    @property
    def actor(self) -> str:
        """The user's actor in the audit log."""
        return self.acts_as or f"user:{self.pk}"

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.email.split("@")[0]


class Membership(TenantModel):
    """One person's role in one tenant."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user}, {self.get_role_display()}"


def _default_models() -> dict[str, str]:
    return {"proxy": "builtin:grounded", "planner": "builtin:grounded", "executor": "builtin:grounded"}


class ShownPicture(TypedDict):
    """A picture of a chatbot as pages and widgets show it; its size is known before it is loaded."""

    address: str
    width: int
    height: int


class Deployment(TenantModel):
    """One chatbot on one website: its key, allowed origins, appearance, greeting and its models per role."""

    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=80)
    public_key = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]{2,62}$", "lower case, digits, hyphens")],
    )
    enabled = models.BooleanField(default=True)
    allowed_origins = models.JSONField(default=list, blank=True, help_text=_("Exact origins that may frame the widget"))
    theme = models.JSONField(default=dict, blank=True)
    greeting = models.CharField(max_length=300, blank=True)
    suggestions = models.JSONField(default=list, blank=True)
    # Codes of `kernel.language.LANGUAGES` that the widget uses; the first is the default. Empty means all.
    languages: models.JSONField[list[str], list[str]] = models.JSONField(default=list, db_default=[], blank=True)
    persona = models.TextField(blank=True, help_text=_("How it sounds, in plain sentences; never policy"))
    model_names = models.JSONField(
        default=_default_models, help_text=_("Model name per role: proxy, planner, executor")
    )
    environment_keys = models.BooleanField(
        _("provider keys of this installation"),
        default=False,
        help_text=_("Whether its models may use the provider keys of this installation, at the operator's expense."),
    )
    opening_hours: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(
        default=dict, blank=True, help_text=_("When your team is available, by day; empty for always")
    )
    timezone = models.CharField(
        max_length=60,
        blank=True,
        validators=[validate_timezone],
        help_text=_("Of the opening hours; the company's when empty"),
    )
    after_hours = models.CharField(
        max_length=500, blank=True, help_text=_("What a visitor reads who wants a person outside of the opening hours")
    )
    # By provider, sealed for this deployment alone (ADR 77); never shown and never read back.
    sealed_keys: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(
        default=dict, blank=True, editable=False
    )
    active_goal_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, blank=True)
    # By kind, the file name and size of its `DeploymentPicture`, so that showing it reads no other row.
    pictures: models.JSONField[dict[str, dict[str, Any]], dict[str, dict[str, Any]]] = models.JSONField(
        default=dict, db_default={}, blank=True, editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "slug"], name="deployment_slug_once")]

    def __str__(self) -> str:
        return self.title

    def model_for(self, role: str) -> str:
        """The name of the model for this role; the built-in one by default."""
        return str(self.model_names.get(role) or GROUNDED)

    @property
    def logo(self) -> ShownPicture | None:
        """What stands in the widget's header instead of the first letter of its name."""
        return self._picture(PictureKind.LOGO)

    @property
    def avatar(self) -> ShownPicture | None:
        """What stands beside its messages."""
        return self._picture(PictureKind.AVATAR)

    def _picture(self, kind: PictureKind) -> ShownPicture | None:
        picture = self.pictures.get(kind)
        if not picture:
            return None
        address = reverse("widget-picture", args=[self.public_key, kind.value, picture["file"]])
        return {"address": address, "width": picture["width"], "height": picture["height"]}

    @property
    def keys(self) -> ProviderKeys:
        """The provider keys for its models."""
        return ProviderKeys(self.environment_keys, self.sealed_keys, str(self.pk))

    @property
    def schedule(self) -> Schedule:
        """When people of the company answer here; without opening hours always, and no time zone is looked up."""
        zone = first_known_timezone(self.timezone, self.tenant.timezone) if self.opening_hours else UTC_NAME
        return Schedule(self.opening_hours, zone)


class DeploymentPicture(TenantModel):
    """The logo or avatar of a deployment, as it was uploaded; anybody may load it. `Deployment.pictures` names the file
    under which it is served."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=PictureKind.choices)
    media_type = models.CharField(max_length=16)
    sha256 = models.CharField(max_length=64)
    content: models.BinaryField[bytes, bytes] = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "kind"], name="deployment_picture_once"),
            models.CheckConstraint(
                condition=Q(media_type__in=["image/png", "image/jpeg", "image/webp"]),
                name="deployment_picture_is_a_raster",
            ),
        ]

    def __str__(self) -> str:
        return str(self.get_kind_display())


class ApiKey(TenantModel):
    """A tenant's REST API key, stored as a hash; `prefix` is shown to people. `scopes` (`KeyScope`) limit its rights; a
    key without scopes has the rights of an owner. After a rotation the secret before is valid until `previous_until`,
    so that a program can change over without an interruption."""

    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    hashed = models.CharField(max_length=64, unique=True)
    scopes: models.JSONField[list[str], list[str]] = models.JSONField(default=list, db_default=[], blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    previous_hashed = models.CharField(max_length=64, unique=True, null=True, editable=False)
    previous_until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, editable=False
    )

    class Meta(TenantModel.Meta):
        verbose_name = _("API key")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(previous_hashed__isnull=True, previous_until__isnull=True)
                | Q(previous_hashed__isnull=False, previous_until__isnull=False),
                name="api_key_overlap_ends",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_active(self) -> bool:
        """Whether requests with it are accepted now."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now())


class IdentityKey(TenantModel):
    """A key with which a deployment's website signs its visitors' identity: a sealed shared secret, or the public half
    of a key pair. Several may be active at once, so that a website can switch keys."""

    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="+")
    key_id = models.SlugField(_("key id"), max_length=60, help_text=_("What the token's header names as its kid"))
    algorithm = models.CharField(max_length=8, choices=IdentityAlgorithm.choices)
    public_key = models.TextField(
        blank=True, max_length=4000, help_text=_("PEM; empty for HS256, whose secret is made here and shown once")
    )
    sealed_secret: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True, editable=False)
    gate = models.SlugField(
        max_length=80, default="identity_verified", help_text=_("The gate that a good token passes, as a script would")
    )
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "key_id"], name="identity_key_once"),
            models.CheckConstraint(
                condition=Q(algorithm=IdentityAlgorithm.HS256, public_key="", sealed_secret__isnull=False)
                | (~Q(algorithm=IdentityAlgorithm.HS256) & ~Q(public_key="") & Q(sealed_secret__isnull=True)),
                name="identity_key_has_its_half",
            ),
        ]

    def __str__(self) -> str:
        return self.key_id


class MessageKey(TenantModel):
    """The public key with which a member signs messages, so that they count as the owner's (spec 5.1 step 2). The
    member's role when a message arrives decides what they may do."""

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    key_id = models.SlugField(_("key id"), max_length=60)
    public_key = models.TextField(max_length=4000, help_text=_("The Ed25519 public key, as PEM"))
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    user_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "key_id"], name="message_key_once")]

    def __str__(self) -> str:
        return self.key_id


def _limit(help_text: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)], help_text=help_text)


class VisitorLimits(TenantModel):
    """A tenant's own limits for its visitors. Empty fields use the limits of the installation."""

    messages_a_minute = _limit("Messages a minute in one conversation")
    address_messages_a_minute = _limit("Messages a minute from one internet address")
    tenant_messages_a_minute = _limit("Messages a minute from all visitors together")
    sockets = _limit("Windows in which one conversation may be open at once")
    model_runs_a_minute = _limit("Runs of a model in one conversation a minute")
    tenant_model_runs_a_minute = _limit("Runs of models in all conversations together a minute")
    pending_turns = _limit("Messages of one conversation that may wait for an answer")
    tenant_pending_turns = _limit("Messages of all conversations that may wait for an answer")

    class Meta(TenantModel.Meta):
        verbose_name = _("visitor limits")
        verbose_name_plural = _("visitor limits")
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="visitor_limits_once")]

    def __str__(self) -> str:
        return "Visitor limits"


class FirstRun(TenantModel):
    """A company's progress through the first-run screens.

    One row per tenant; the choices are stored in the deployment.
    """

    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="+")
    done: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="first_run_once")]

    def __str__(self) -> str:
        return "First run"


class Sighting(TenantModel):
    """When an allowed website last loaded a deployment's widget, to the minute. Reported by browsers, no proof."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="+")
    origin = models.CharField(max_length=300)
    last_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["deployment", "origin"], name="sighting_once")]

    def __str__(self) -> str:
        return self.origin
