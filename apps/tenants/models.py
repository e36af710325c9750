"""Who exists, who belongs, which deployment is this?

`Tenant` and `User` are the platform's own directory; everything else belongs to one tenant and stands behind row-level
security. A deployment is one chatbot on one site; its public key finds its tenant, an API key's hash finds its owner.
"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.contrib.auth.models import AbstractUser, BaseUserManager
from django.core.validators import RegexValidator
from django.db import models

from apps.tenants.enums import Role
from kernel.tenancy import TenantModel


class Tenant(models.Model):
    """A customer of the platform."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    slug = models.SlugField(unique=True, max_length=60)
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=60, default="Europe/London")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name


class EmailUserManager(BaseUserManager["User"]):
    """Creates users by e-mail address; the address is the login."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        address = self.normalize_email(email).lower()
        user = self.model(email=address, username=address, **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractUser):
    """A person who can log in. What they may do is said by memberships, never here."""

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    email = models.EmailField("e-mail address", unique=True)
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[EmailUserManager] = EmailUserManager()  # type: ignore[assignment]  # ours has no usernames

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


class Deployment(TenantModel):
    """One chatbot on one site: its key, the sites that may frame it, its look and greeting, its models per role."""

    slug = models.SlugField(max_length=60)
    title = models.CharField(max_length=80)
    public_key = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]{2,62}$", "lower case, digits, hyphens")],
    )
    enabled = models.BooleanField(default=True)
    allowed_origins = models.JSONField(default=list, blank=True, help_text="Exact origins that may frame the widget")
    theme = models.JSONField(default=dict, blank=True)
    greeting = models.CharField(max_length=300, blank=True)
    suggestions = models.JSONField(default=list, blank=True)
    persona = models.TextField(blank=True, help_text="How it sounds, in plain sentences; never policy")
    model_names = models.JSONField(default=_default_models, help_text="Model name per role: proxy, planner, executor")
    active_goal_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "slug"], name="deployment_slug_once")]

    def __str__(self) -> str:
        return self.title


class ApiKey(TenantModel):
    """A tenant's key for the REST API, kept as a hash; `prefix` is what people may see of it."""

    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12)
    hashed = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
