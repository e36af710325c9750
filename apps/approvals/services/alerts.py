"""Who is told of which new cards, and how: members choose, and what is due is claimed here and sent by
`autonomy.alert_delivery`.

What is claimed is never claimed again: a push that is lost is made up for by the letter, which goes to whoever has not
looked. Neither says a word of what a card is about: its risk, and where to look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from apps.approvals import webpush
from apps.approvals.enums import AlertWay, Risk
from apps.approvals.models import WAITING, AlertChoice, Card, Look, PushSubscription
from apps.approvals.models.alerts import LEAST_MINUTES, MOST_MINUTES
from apps.approvals.rules import APPROVING_ROLES
from apps.approvals.services.course import deciders_of
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.tenants.queries import require_role
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.tenancy import run_isolated

MOST_BROWSERS, MOST_PUSHES = 10, 3
# One letter in so many minutes, pushes in so many seconds: what comes meanwhile is told together.
LETTER_MINUTES, PUSH_SECONDS = 10, 5
# A card may be committed so much later than it says it was made.
LATE_SECONDS = 60
# Why the message of a card waits: something is due about it later.
NOT_YET = "not_yet"
_MOST_CARDS, _KEPT_IDS = 500, 100
REVIEW = "/console/review/"


@dataclass(frozen=True)
class Push:
    """One message for one browser. `said` is all of it."""

    subscription_id: UUID
    endpoint: str
    p256dh: str
    auth: str
    said: dict[str, Any]


@dataclass(frozen=True)
class Letter:
    """One letter for one member: how many cards wait, by risk."""

    address: str
    counts: dict[str, int]


def choice_of(user: Any) -> AlertChoice | None:
    found: AlertChoice | None = AlertChoice.objects.filter(user_id=user.pk).first()
    return found


def browsers_of(user: Any) -> list[PushSubscription]:
    return list(PushSubscription.objects.filter(user_id=user.pk))


def choose(user: Any, *, way: AlertWay, minutes: int) -> AlertChoice:
    """From now on. Raises `SilasError` 400 for minutes that are none, 403 for whoever decides nothing."""
    require_role(user, APPROVING_ROLES)
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise SilasError("alert_minutes", f"Choose {LEAST_MINUTES} to {MOST_MINUTES} minutes.")
    moment = now()
    AlertChoice.objects.bulk_create(
        [AlertChoice(user=user, pushed_until=moment, mailed_until=moment)], ignore_conflicts=True
    )
    row: AlertChoice = AlertChoice.objects.select_for_update(of=("self",), no_key=True).get(user_id=user.pk)
    if row.way == AlertWay.OFF:
        row.pushed_until = row.mailed_until = moment
    row.way, row.minutes = way, minutes
    row.save(update_fields=["way", "minutes", "pushed_until", "mailed_until"])
    bus.release_deferred(Queue.TRUSTED, reason=NOT_YET)
    record(AuditEvent.ALERTS_CHOSEN, actor=user.actor, subject=f"user:{user.pk}", data={"way": way.value})
    return row


def subscribe(user: Any, *, endpoint: str, p256dh: str, auth: str, browser: str) -> PushSubscription:
    """Push to this browser from now on. Raises `SilasError` 400 for an address inside of the house, or keys that are
    none; 409 for one browser too many."""
    require_role(user, APPROVING_ROLES)
    if not _may_knock(endpoint):
        raise SilasError("push_address", "This push service cannot be reached from here.")
    if problem := webpush.keys_problem(p256dh, auth):
        raise SilasError("push_keys", problem)
    hashed = sha256_hex(endpoint)
    if PushSubscription.objects.filter(user_id=user.pk).exclude(endpoint_hash=hashed).count() >= MOST_BROWSERS:
        raise SilasError("push_browsers", f"Remove one of your {MOST_BROWSERS} browsers first.", status=409)
    row: PushSubscription
    row, _ = PushSubscription.objects.update_or_create(
        endpoint_hash=hashed,
        defaults={"user": user, "endpoint": endpoint, "p256dh": p256dh, "auth": auth, "browser": browser[:80]},
        create_defaults={
            "user": user,
            "endpoint": endpoint,
            "p256dh": p256dh,
            "auth": auth,
            "browser": browser[:80],
            "created_at": now(),
        },
    )
    record(AuditEvent.PUSH_ADDED, actor=user.actor, subject=f"user:{user.pk}")
    if (kept := choice_of(user)) is None or kept.way != AlertWay.PUSH:
        choose(user, way=AlertWay.PUSH, minutes=kept.minutes if kept else 10)
    return row


def unsubscribe(subscription_id: UUID, *, user: Any) -> None:
    """Raises `NotFound` for anybody else's."""
    gone, _ = PushSubscription.objects.filter(pk=subscription_id, user_id=user.pk).delete()
    if not gone:
        raise NotFound("browser")
    record(AuditEvent.PUSH_REMOVED, actor=user.actor, subject=f"user:{user.pk}", data={"gone": False})


def drop_gone(subscription_ids: Sequence[UUID]) -> None:
    """Browsers of which their push service says that they are no more."""
    for row in PushSubscription.objects.filter(pk__in=subscription_ids):
        row.delete()
        record(AuditEvent.PUSH_REMOVED, subject=f"user:{row.user_id}", data={"gone": True})


def claim_alerts(moment: datetime) -> list[Push | Letter]:
    """What is to be sent now, noted as told; inside a scope. Whoever looks meanwhile passes the same members by."""
    rows = AlertChoice.objects.select_for_update(of=("self",), skip_locked=True, no_key=True).select_related("user")
    choices = list(_who_want_any(rows))
    if not choices:
        return []
    since = min(min(one.pushed_until, one.mailed_until) for one in choices) - timedelta(seconds=LATE_SECONDS)
    waiting = Card.objects.filter(status__in=WAITING, expires_at__gt=moment, created_at__gt=since)
    cards = list(waiting.order_by("created_at")[:_MOST_CARDS])
    told = _Told(cards)
    due: list[Push | Letter] = []
    for choice in choices:
        due += _pushes(choice, told, moment)
        due += _letters(choice, told, moment)
    if due:
        pushes = sum(isinstance(alert, Push) for alert in due)
        record(AuditEvent.ALERTS_SENT, data={"pushes": pushes, "letters": len(due) - pushes})
    return due


def next_look(card_id: UUID, moment: datetime) -> datetime | None:
    """When something may be due about this card, None where nothing is. Whoever changes their choice waits until the
    caller's transaction is over, and is not missed."""
    card = Card.objects.filter(pk=card_id, status__in=WAITING, expires_at__gt=moment).first()
    if card is None:
        return None
    due: list[datetime] = []
    for choice in _who_want_any(AlertChoice.objects.select_for_update(of=("self",), no_key=True)):
        if choice.way == AlertWay.PUSH and _is_new(card, choice):
            due.append(_next_push(choice))
        if card.created_at > choice.mailed_until:
            due.append(max(card.created_at + timedelta(minutes=choice.minutes), _next_letter(choice)))
    return max(min(due), moment + timedelta(seconds=PUSH_SECONDS)) if due else None


def _who_want_any(choices: QuerySet[AlertChoice]) -> QuerySet[AlertChoice]:
    return choices.exclude(way=AlertWay.OFF).filter(user__is_active=True).order_by("pk")


def _is_new(card: Card, choice: AlertChoice) -> bool:
    early = choice.pushed_until - timedelta(seconds=LATE_SECONDS)
    return card.created_at > early and str(card.pk) not in choice.pushed


def _next_push(choice: AlertChoice) -> datetime:
    return choice.pushed_until + timedelta(seconds=PUSH_SECONDS if choice.pushed else 0)


def _next_letter(choice: AlertChoice) -> datetime:
    return (choice.mailed_at or datetime.min.replace(tzinfo=UTC)) + timedelta(minutes=LETTER_MINUTES)


def pushes_to(user_ids: Collection[UUID], said: Sequence[dict[str, Any]]) -> list[Push]:
    """The same words for each browser of those of them who chose pushes; for rooms above, whose subjects are no
    cards."""
    chosen = AlertChoice.objects.filter(way=AlertWay.PUSH, user__is_active=True, user_id__in=user_ids)
    browsers = PushSubscription.objects.filter(user_id__in=chosen.values("user_id"))
    return [Push(one.pk, one.endpoint, one.p256dh, one.auth, words) for one in browsers for words in said]


class _Told:
    """The open cards, and who may decide each: asked once a card."""

    def __init__(self, cards: list[Card]) -> None:
        self.cards = cards
        self._deciders: dict[UUID, set[UUID]] = {}

    def may_decide(self, card: Card, user_id: UUID) -> bool:
        if card.pk not in self._deciders:
            # A card whose rows cannot be read keeps no member from hearing of the others.
            self._deciders[card.pk] = run_isolated(_deciders_of, card, lambda _: set())
        return user_id in self._deciders[card.pk]


def _deciders_of(card: Card) -> set[UUID]:
    return {one.pk for one in deciders_of(card)}


def _pushes(choice: AlertChoice, told: _Told, moment: datetime) -> list[Push]:
    if choice.way != AlertWay.PUSH or moment < _next_push(choice):
        return []
    new = [card for card in told.cards if _is_new(card, choice)]
    if not new:
        return []
    mine = [card for card in new if card.created_at > choice.pushed_until or choice.pushed]
    choice.pushed = [*choice.pushed, *(str(card.pk) for card in new)][-_KEPT_IDS:]
    choice.pushed_until = max(choice.pushed_until, *(card.created_at for card in new))
    choice.save(update_fields=["pushed", "pushed_until"])
    said = _said([card for card in mine if told.may_decide(card, choice.user_id)])
    return [
        Push(one.pk, one.endpoint, one.p256dh, one.auth, words)
        for one in PushSubscription.objects.filter(user_id=choice.user_id)
        for words in said
    ]


def _said(cards: list[Card]) -> list[dict[str, Any]]:
    """One message a card; of many at once a single one."""
    if len(cards) > MOST_PUSHES:
        return [{"count": len(cards), "risk": _gravest(cards), "url": REVIEW}]
    return [{"count": 1, "risk": card.risk, "url": f"{REVIEW}{card.pk}/"} for card in cards]


def _gravest(cards: list[Card]) -> str:
    order = list(Risk.values)
    return max((card.risk for card in cards), key=order.index)


def _letters(choice: AlertChoice, told: _Told, moment: datetime) -> list[Letter]:
    """About what waits for so many minutes and they have not looked at."""
    early, late = choice.mailed_until, moment - timedelta(minutes=choice.minutes)
    if moment < _next_letter(choice):
        return []
    due = [card for card in told.cards if early < card.created_at <= late]
    if not due:
        return []
    choice.mailed_until = max(card.created_at for card in due)
    seen = set(Look.objects.filter(user_id=choice.user_id, card__in=due).values_list("card_id", flat=True))
    unseen = [card for card in due if card.pk not in seen and told.may_decide(card, choice.user_id)]
    choice.mailed_at = moment if unseen else choice.mailed_at
    choice.save(update_fields=["mailed_until", "mailed_at"])
    return [Letter(choice.user.email, dict(Counter(card.risk for card in unseen)))] if unseen else []


def _may_knock(endpoint: str) -> bool:
    if settings.WEBHOOKS_PRIVATE:
        return bool(host_of(endpoint, schemes=("http", "https")))
    return is_public_url(endpoint)
