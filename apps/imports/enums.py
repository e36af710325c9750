"""Enumerations of the imports room."""

from django.db.models import TextChoices

from kernel.language import gettext_lazy as _


class System(TextChoices):
    """Whose export it is."""

    CHATWOOT = "chatwoot", _("Chatwoot")
    INTERCOM = "intercom", _("Intercom")
    ZENDESK = "zendesk", _("Zendesk")


class RunState(TextChoices):
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class Outcome(TextChoices):
    """What an import does with one line."""

    CREATED = "created", _("Created")
    UPDATED = "updated", _("Updated")
    UNCHANGED = "unchanged", _("Unchanged")
    SKIPPED = "skipped", _("Skipped")


class Reason(TextChoices):
    """Why a line is skipped."""

    NOT_JSON = "not_json", _("It can't be read.")
    NOT_KNOWN = "not_known", _("It's neither a contact, a conversation nor a canned reply.")
    NO_ID = "no_id", _("It has no ID.")
    NO_CONTACT = "no_contact", _("Its contact is unknown.")
    NO_TEXT = "no_text", _("It has no text.")
    NAME_TAKEN = "name_taken", _("A canned reply with this name and another text exists.")
    TOO_MANY = "too_many", _("There are too many canned replies.")
    TOO_LARGE = "too_large", _("It's too large.")
    INVALID = "invalid", _("A field has an unexpected form.")
