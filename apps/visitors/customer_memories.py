"""Everything that is remembered about one customer, to hand to them: as JSON, and as a page to read.

Only what is certainly about them: their own memories, what was said to them in conversations after they were verified,
and what was said before that in conversations in which no other customer was verified. With sources and dates, without
ids, trust, taint, marks and former texts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.template.loader import render_to_string
from django.utils.functional import Promise

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory.enums import SourceKind
from apps.memory.models import MemoryItem
from apps.memory.queries import customer_of, of_customer
from apps.memory.schemas import conversation_scope
from apps.sessions.models import ChatSession
from apps.tenants.models import Tenant
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound
from kernel.language import gettext_lazy
from kernel.tenancy import current_tenant_id

_SOURCES: dict[str, str | Promise] = {
    SourceKind.CONVERSATION_RAW: gettext_lazy("Your message"),
    SourceKind.AGENT_RESPONSE_RAW: gettext_lazy("An answer from our assistant"),
    SourceKind.STAFF_REPLY_RAW: gettext_lazy("An answer from our team"),
    SourceKind.RESEARCH_QUERY_RAW: gettext_lazy("A search in our documents"),
    SourceKind.TOOL_OUTPUT_RAW: gettext_lazy("Data from our systems"),
    SourceKind.MEMORY_OP: gettext_lazy("Noted by our assistant"),
    SourceKind.PROMOTION: gettext_lazy("Noted by our assistant"),
    SourceKind.KEPT_PROPOSAL: gettext_lazy("Noted by our team"),
}


@dataclass(frozen=True)
class Remembered:
    """One memory as its customer reads it. `kept_until` is None for what does not expire by itself."""

    text: str
    source: str
    stored_at: datetime
    changed_at: datetime
    kept_until: datetime | None


def export_json(customer: str, *, actor: str) -> str:
    """Raises `NotFound` for an empty id; a customer of whom nothing is remembered has an empty list."""
    content = _export(customer, actor=actor)
    memories = [asdict(each) for each in content["memories"]]
    return json.dumps({**content, "memories": memories}, ensure_ascii=False, indent=2, default=datetime.isoformat)


def export_html(customer: str, *, actor: str) -> str:
    """A page of its own, without scripts and styles. Raises as `export_json`."""
    return render_to_string("visitors/customer_memories.html", _export(customer, actor=actor))


def _export(customer: str, *, actor: str) -> dict[str, Any]:
    if not customer or "\0" in customer:
        raise NotFound()
    rows = MemoryItem.objects.filter(of_customer(customer) | Q(scope__in=_before_verified(customer)))
    memories = [
        Remembered(row.content, str(_SOURCES[row.source_kind]), row.created_at, row.updated_at, row.valid_until)
        for row in rows.order_by("created_at", "pk").defer("embedding", "words", "revisions")
    ]
    data = {"count": len(memories), "customer": sha256_hex(customer.encode())}
    record(AuditEvent.CUSTOMER_MEMORY_EXPORTED, actor=actor, data=data)
    company = Tenant.objects.get(pk=current_tenant_id()).name
    return {"customer": customer, "company": company, "exported_at": now(), "memories": memories}


def _before_verified(customer: str) -> list[str]:
    """The scopes of what was said before anybody was verified, in conversations that are this customer's alone."""
    theirs = ChatSession.objects.filter(Q(customer=customer) | Q(last_customer=customer))
    mine = {session.pk for session in theirs if session.whose == customer}
    others = ChatSession.objects.filter(pk__in=mine).exclude(last_customer__in=["", customer])
    shared = set(others.values_list("pk", flat=True))
    said = MemoryItem.objects.filter(session_id__in=mine).values_list("session_id", "scope").distinct()
    shared |= {pk for pk, scope in said if pk and customer_of(scope) not in ("", customer)}
    return [str(conversation_scope(pk)) for pk in mine - shared]
