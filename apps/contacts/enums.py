"""Enumerations of the contacts room."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class IdentityKind(TextChoices):
    """What a contact is known by. `CUSTOMER` is the company's own id of them, on which access levels hang."""

    CUSTOMER = "customer", _("Customer ID")
    EMAIL = "email", _("Email")
    PHONE = "phone", _("Phone")
    TELEGRAM = "telegram", _("Telegram")
    WHATSAPP = "whatsapp", _("WhatsApp")
    SLACK = "slack", _("Slack")
    TEAMS = "teams", _("Microsoft Teams")
    IMPORTED = "imported", _("ID in another system")


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
