"""Delete the texts of conversations after the time that their company keeps them, in short steps.

Site attributes are deleted with them; other rooms delete what they hold of the conversation
(`conversations_forgotten`). That an entry existed, when and by whom, stays, as do cards, work and the audit log, which
are evidence. Entries written afterwards are kept for the full time. A step of `bus.retention`."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.chronicle import SAID
from apps.sessions.context_state import Focus
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.sessions.signals import conversations_forgotten
from apps.tenants.queries import retention
from kernel.clock import now
from kernel.tenancy import for_each_row

BATCH = 50
_WITHOUT_WORDS = (EntryKind.ACCESS, EntryKind.OWNER)
FORGOTTEN = "[No longer kept.]"
# What a frame says besides words: which work it is about and how that stands; who took over; which level was reached.
_KEPT_OF_STATUS = ("work_item_id", "status")
# That there were citations is counted; which, says what was asked.
_REST_OF_FRAME = """(
    SELECT coalesce(jsonb_object_agg(key, CASE WHEN key = 'citations' THEN '[]' ELSE value END), '{}')
    FROM jsonb_each(payload) WHERE key = ANY(%s) OR key = 'citations'
)"""


def forget_batch() -> bool:
    """Forget the conversations that were silent longest, not more than a short transaction can; inside a scope. True
    when there may be more."""
    days = retention().conversations
    if days is None:
        return False
    due = list(_due(now() - timedelta(days=days)))
    forgotten: list[UUID] = []

    def forget(session: ChatSession) -> int:
        entries = _forget(session)
        forgotten.append(session.pk)
        return entries

    entries = for_each_row(due, forget)
    if forgotten:
        conversations_forgotten(forgotten)
        record(AuditEvent.RETENTION_SWEPT, data={"kind": "conversations", "count": len(forgotten), "entries": entries})
    return len(forgotten) == BATCH


def _due(before: datetime) -> QuerySet[ChatSession]:
    """Lock the due conversations; one that is locked elsewhere is left for the next time."""
    unforgotten = Q(forgotten_at=None) | Q(forgotten_at__lt=F("last_active_at"))
    rows = ChatSession.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
    due: QuerySet[ChatSession] = rows.filter(unforgotten, last_active_at__lt=before)
    return due.order_by("last_active_at")[:BATCH]


def _forget(session: ChatSession) -> int:
    """How many entries lost their words."""
    count = erase_words(entries_with_words().filter(session_id=session.pk))
    Turn.objects.filter(session_id=session.pk).exclude(read_as=None).update(read_as=FORGOTTEN)
    session.preview, session.customer_name, session.attributes = FORGOTTEN, "", {}
    session.focus = _focus_of(session).without_memory(session.seq).as_kept()
    # Compared with `last_active_at`: what is said afterwards is forgotten after its own time.
    session.forgotten_at = now()
    session.save(update_fields=["preview", "customer_name", "attributes", "focus", "forgotten_at"])
    return count


def entries_with_words() -> QuerySet[ChronicleEntry]:
    """Entries whose words are still kept."""
    rows: QuerySet[ChronicleEntry] = ChronicleEntry.objects.exclude(kind__in=_WITHOUT_WORDS).exclude(text=FORGOTTEN)
    return rows


def erase_words(entries: QuerySet[ChronicleEntry]) -> int:
    """Erase the words of these entries and return how many they were. Of a file, a question or its answer only the
    place stays: without its text it cannot be shown."""
    ids = list(entries.order_by().values_list("pk", flat=True))
    said = ChronicleEntry.objects.filter(pk__in=ids)
    kept = RawSQL(_REST_OF_FRAME, [list(_KEPT_OF_STATUS)])  # noqa: S611  (our own words only)
    # A question or a file without its text cannot be shown as one.
    said.exclude(kind__in=(EntryKind.MESSAGE, EntryKind.STATUS)).update(kind=EntryKind.STATUS, sender=Sender.SYSTEM)
    return int(said.update(text=FORGOTTEN, payload=kept))


def forget_conversations(sessions: Collection[ChatSession]) -> None:
    """Forget these conversations, which the caller has locked, before their time; inside a scope."""
    for session in sessions:
        _forget(session)
    if sessions:
        conversations_forgotten([session.pk for session in sessions])


def forget_remembered(session: ChatSession) -> None:
    """Forget what this locked conversation itself still says of entries whose words were erased: its preview, if it is
    of one of them, and what was asked of memory. The caller saves `preview` and `focus`."""
    said = ChronicleEntry.objects.filter(session_id=session.pk).filter(Q(kind__in=SAID) | Q(text=FORGOTTEN))
    if said.exclude(text="").order_by("-seq").values_list("text", flat=True).first() == FORGOTTEN:
        session.preview = FORGOTTEN
    session.focus = _focus_of(session).without_memory(session.seq).as_kept()


def _focus_of(session: ChatSession) -> Focus:
    """Settings that cannot be read keep no words from being forgotten."""
    try:
        return Focus.of(session.focus)
    except (AttributeError, TypeError, ValueError):
        return Focus()
