"""Signals about tenants, members and account e-mails. Receivers run inside the sender's transaction."""

from __future__ import annotations

from uuid import UUID

from apps.tenants.enums import Role
from apps.tenants.models import Letter
from kernel.events import Event

# (user, new role, actor)
role_changed: Event[[UUID, Role, str]] = Event("role_changed")
# (user) who is no longer a member.
member_removed: Event[[UUID]] = Event("member_removed")
# The tenant of the scope has another name or time zone.
tenant_changed: Event[[]] = Event("tenant_changed")
# An account e-mail was queued.
email_enqueued: Event[[Letter]] = Event("email_enqueued")
