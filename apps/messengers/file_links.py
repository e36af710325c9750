"""Links to files of conversations, for channels that cannot carry the bytes.

A link is signed, names one file of one conversation, and opens it without a login for a week. It ends earlier with
the file, and when the channel is turned off.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urljoin
from uuid import UUID

from django.core import signing
from django.core.files import File
from django.urls import reverse

from apps.messengers.models import Channel
from apps.visitors.files import file_of
from apps.visitors.models import VisitorFile
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

OPEN_FOR = timedelta(days=7)
_SALT = "apps.messengers.file_links"


def link(channel: Channel, row: VisitorFile) -> str:
    """The file's address; "" where the channel was not checked yet, which tells it our own address."""
    own = str(channel.settings.get("webhook") or "")
    names = [str(each) for each in (channel.tenant_id, channel.pk, row.session_id, row.pk)]
    return urljoin(own, reverse("channel-file", args=[signing.dumps(names, salt=_SALT)])) if own else ""


def opened(token: str) -> tuple[VisitorFile, File[bytes]]:
    """The file and its bytes, opened. Raises `NotFound`, also for a link that was changed or is over. Opens its own
    scope."""
    try:
        names: Sequence[str] = signing.loads(token, salt=_SALT, max_age=OPEN_FOR)
    except signing.BadSignature:
        raise NotFound() from None
    tenant_id, channel_id, session_id, file_id = map(UUID, names)
    with tenant_scope(tenant_id):
        # The link alone opens the file, so that turning the channel off has to end it.
        if not Channel.objects.filter(pk=channel_id, enabled=True).exists():
            raise NotFound()
        return file_of(session_id, file_id)
