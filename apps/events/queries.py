"""Read events in order, as they are sent: `{"id", "type", "version", "timestamp", "data"}`."""

from __future__ import annotations

from collections.abc import Sequence

from apps.events.catalogue import CATALOGUE, MESSAGE_CREATED
from apps.events.models import Event, EventHead
from apps.sessions.models import ChronicleEntry

BATCH = 500


def head() -> tuple[int, int]:
    """The numbers of the company's last event and of the last that was deleted; zeros before any."""
    row: EventHead | None = EventHead.objects.first()
    return (row.last_seq, row.deleted_seq) if row else (0, 0)


def events_after(seq: int, *, until: int | None = None) -> list[Event]:
    """The next events after this number, at most `BATCH`."""
    rows = Event.objects.filter(seq__gt=seq)
    rows = rows if until is None else rows.filter(seq__lte=until)
    return list(rows.order_by("seq")[:BATCH])


def rendered(events: Sequence[Event]) -> list[dict[str, object]]:
    """The events as they are sent. What was said is read now, so that a deleted text is not sent."""
    said = {(row.session_id, row.data["seq"]) for row in events if row.type == MESSAGE_CREATED}
    texts: dict[tuple[object, int], str] = {}
    if said:
        entries = ChronicleEntry.objects.filter(
            session_id__in={session for session, _ in said}, seq__in={seq for _, seq in said}
        )
        texts = {(session, seq): text for session, seq, text in entries.values_list("session_id", "seq", "text")}
    return [_rendered(event, texts) for event in events]


def _rendered(event: Event, texts: dict[tuple[object, int], str]) -> dict[str, object]:
    data = dict(event.data)
    if event.session_id is not None:
        data["session"] = str(event.session_id)
    if event.deployment_id is not None:
        data["deployment"] = str(event.deployment_id)
    if event.type == MESSAGE_CREATED:
        data["text"] = texts.get((event.session_id, data["seq"]), "")
    return {
        "id": f"evt_{event.pk.hex}",
        "type": event.type,
        "version": CATALOGUE[event.type].version if event.type in CATALOGUE else 1,
        "timestamp": event.created_at.isoformat(),
        "data": data,
    }
