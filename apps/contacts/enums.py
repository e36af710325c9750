"""Enumerations of the contacts room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class IdentityKind(TextChoices):
    """What a contact is known by, beside the ids that channels give people (`identity_kinds`). `CUSTOMER` is the
    company's own id of them, on which access levels hang."""

    CUSTOMER = "customer", _("Customer ID")
    EMAIL = "email", _("Email")
    PHONE = "phone", _("Phone")
    IMPORTED = "imported", _("ID in another system")


_channels: dict[str, StrOrPromise] = {}


def register_identity_kind(kind: str, label: StrOrPromise) -> None:
    """Let contacts be known by the ids of a channel; called at the start."""
    _channels[kind] = label


def identity_kinds() -> list[tuple[str, StrOrPromise]]:
    """Every kind with its label, in the form of a field's choices."""
    return [*IdentityKind.choices, *_channels.items()]


class Proof(TextChoices):
    """How an identity was verified; `NONE` for one that is not."""

    NONE = "", _("Not verified")
    GATE = "gate", _("Verified by a gate")
    SIGNED = "signed", _("Signed by your website")
    LINK = "link", _("Confirmed by a link")
    PROVIDER = "provider", _("Verified by the channel")


class ContactSource(TextChoices):
    """Where a contact came from."""

    CHAT = "chat", _("Conversation")
    TEAM = "team", _("Your team")
    API = "api", _("API")
    IMPORT = "import", _("Import")


class ErasureState(TextChoices):
    """`STOPPED`: it failed and continues when it is requested again."""

    RUNNING = "running", _("Running")
    STOPPED = "stopped", _("Stopped")
    DONE = "done", _("Done")
