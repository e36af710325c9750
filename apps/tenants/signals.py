"""News of a company's people for the rooms above. Receivers run inside the transaction that changed them."""

from __future__ import annotations

from uuid import UUID

from apps.tenants.enums import Role
from apps.tenants.models import Letter
from kernel.events import Event

# (user, their role now, who changed it)
role_changed: Event[[UUID, Role, str]] = Event("role_changed")
# Somebody is no member any more.
member_removed: Event[[UUID]] = Event("member_removed")
# A letter about an account is to be sent.
email_enqueued: Event[[Letter]] = Event("email_enqueued")
