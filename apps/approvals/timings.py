"""Set how long cards wait for a decision, for the company or one chatbot. Inside a tenant scope.

A chatbot's own time takes precedence over the company's, and that over the installation's (`CARD_SECONDS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from apps.approvals.enums import Pace
from apps.approvals.models import CardTiming
from apps.audit.services import record_row_change
from apps.tenants.company import company_values
from apps.tenants.locks import lock_deployment
from kernel.errors import InvalidFields


def card_timings(deployment_id: UUID | None, *, lock: bool = False) -> dict[Pace, int | None]:
    """The seconds that the company, or this chatbot, set itself; None where it sets none. `lock`: until they are
    changed in the same transaction."""
    if lock:
        _lock(deployment_id)
    rows = _rows(deployment_id).values_list("pace", "seconds")
    own = {Pace(pace): seconds for pace, seconds in rows}
    return {pace: own.get(pace) for pace in Pace}


def inherited_timings(deployment_id: UUID | None) -> dict[Pace, int]:
    """The seconds that hold where the company, or this chatbot, sets none itself."""
    company = card_timings(None) if deployment_id else {}
    return {pace: company.get(pace) or settings.CARD_SECONDS[pace] for pace in Pace}


def change_card_timings(seconds: Mapping[Pace, int | None], *, deployment_id: UUID | None, actor: str) -> None:
    """Set the named times of the company, or of this chatbot of it; None removes one. Cards that wait already keep
    theirs.

    Raises `SilasError` `invalid` 400 for a time out of bounds, and `NotFound` for a chatbot of another company.
    """
    _lock(deployment_id)
    for pace, value in seconds.items():
        row = _rows(deployment_id).filter(pace=pace).first()
        if value is None:
            if row:
                record_row_change(row, "deleted", actor=actor, before={"seconds": row.seconds}, after={})
                row.delete()
        elif row is None:
            _set(CardTiming(deployment_id=deployment_id, pace=pace), value, change="added", actor=actor)
        elif row.seconds != value:
            _set(row, value, change="changed", actor=actor)


def _lock(deployment_id: UUID | None) -> None:
    """Of rivals who set a time that has no row yet, the second waits and finds it."""
    if deployment_id is None:
        company_values(lock=True)
    else:
        lock_deployment(deployment_id)


def _rows(deployment_id: UUID | None) -> QuerySet[CardTiming]:
    rows = CardTiming.objects.all()
    return rows.filter(deployment=None) if deployment_id is None else rows.filter(deployment_id=deployment_id)


def _set(row: CardTiming, seconds: int, *, change: str, actor: str) -> None:
    before = {"seconds": row.seconds} if change == "changed" else {}
    row.seconds = seconds
    try:
        row.clean_fields(exclude={"tenant", "deployment"})
    except ValidationError as error:
        raise InvalidFields(error.message_dict) from None
    row.save()
    after: dict[str, object] = {"seconds": seconds}
    if change == "added":
        after |= {"pace": row.pace, "deployment": str(row.deployment_id) if row.deployment_id else None}
    record_row_change(row, change, actor=actor, before=before, after=after)
