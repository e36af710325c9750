"""Notify members of new cards by push and e-mail: their choices, and the alerts that are due.

Alerts are claimed here and sent by `autonomy.alert_delivery`. What is claimed is never claimed again: if a push is
lost, the e-mail makes up for it, because it goes to members who have not looked. Neither contains what a card is about,
only its risk and a link.

A card that waits for the customer is left out. After its return it counts as a new card without a view, by the time at
which it entered the queue (`queries.queued_at`).

In a member's quiet hours nothing is claimed for them. What still waits at their end is due then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from apps.approvals import queries, signals
from apps.approvals.cards import webpush
from apps.approvals.cards.lifecycle import eligible_approvers
from apps.approvals.cards.quiet_hours import QuietHours
from apps.approvals.cards.risk import max_risk
from apps.approvals.enums import AlertWay, Risk
from apps.approvals.models import OPEN_STATUSES, AlertChoice, Card, Look, PushSubscription
from apps.approvals.models.alerts import MAX_MINUTES, MIN_MINUTES
from apps.approvals.rules import APPROVING_ROLES
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import require_role
from apps.tenants.rules import roles_with
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.language import gettext
from kernel.tenancy import run_isolated

MAX_BROWSERS, MAX_PUSHES = 10, 3
ANSWERING_ROLES = roles_with(Capability.ANSWER)
# At most one e-mail in so many minutes, pushes in so many seconds; what comes meanwhile is put together.
EMAIL_MINUTES, PUSH_SECONDS = 10, 5
# A card may be committed so much later than its `created_at`.
LATE_SECONDS = 60
# Reason of a queued message that waits for a later alert.
NOT_YET = "not_yet"
_MAX_CARDS, _KEPT_IDS = 500, 100
REVIEW_PATH = "/console/review/"


@dataclass(frozen=True)
class Push:
    """One push message for one browser; `payload` is everything that it says."""

    subscription_id: UUID
    endpoint: str
    p256dh: str
    auth: str
    payload: dict[str, Any]


@dataclass(frozen=True)
class AlertEmail:
    """One e-mail for one member in their language, with the number of waiting cards by risk."""

    address: str
    counts: dict[str, int]
    language: str = ""


def alert_choice(user: User) -> AlertChoice | None:
    choice: AlertChoice | None = AlertChoice.objects.select_related("tenant").filter(user_id=user.pk).first()
    return choice


def push_subscriptions(user: User) -> list[PushSubscription]:
    return list(PushSubscription.objects.filter(user_id=user.pk))


def set_alert_choice(user: User, *, way: AlertWay, minutes: int) -> AlertChoice:
    """Set how a member is notified from now on. Raises `SilasError` 400 for minutes out of range, 403 without the
    role."""
    require_role(user, APPROVING_ROLES)
    if not MIN_MINUTES <= minutes <= MAX_MINUTES:
        raise SilasError(
            ErrorCode.ALERT_MINUTES,
            gettext("Choose {min_minutes} to {max_minutes} minutes.").format(
                min_minutes=MIN_MINUTES, max_minutes=MAX_MINUTES
            ),
        )
    row = _lock_choice(user)
    if row.way == AlertWay.OFF:
        # A member who turns alerts on hears of new cards, not of everything that came while they were off.
        row.pushed_until = row.mailed_until = now()
    row.way, row.minutes = way, minutes
    row.save(update_fields=["way", "minutes", "pushed_until", "mailed_until"])
    bus.release_deferred(Queue.TRUSTED, reason=NOT_YET)
    record(AuditEvent.ALERTS_CHOSEN, actor=user.actor, subject=f"user:{user.pk}", data={"way": way.value})
    return row


def set_notice_choice(user: User, *, sound: bool, desktop: bool, quiet_hours: QuietHours | None) -> AlertChoice:
    """Set what a member hears and sees of news in an open console, and when they are not disturbed, also by pushes and
    emails. Raises `SilasError` 403 without the role."""
    require_role(user, ANSWERING_ROLES)
    row = _lock_choice(user)
    row.sound, row.desktop = sound, desktop
    row.quiet_hours = quiet_hours.as_json() if quiet_hours else None
    row.save(update_fields=["sound", "desktop", "quiet_hours"])
    bus.release_deferred(Queue.TRUSTED, reason=NOT_YET)
    data = {"sound": sound, "desktop": desktop, "quiet_hours": quiet_hours is not None}
    record(AuditEvent.ALERTS_CHOSEN, actor=user.actor, subject=f"user:{user.pk}", data=data)
    signals.notice_choice_changed(user.pk)
    return row


def _lock_choice(user: User) -> AlertChoice:
    """The member's choice, locked; created if there is none, with everything up to now as alerted."""
    moment = now()
    # Of two first requests the second inserts nothing and waits for the lock below.
    AlertChoice.objects.bulk_create(
        [AlertChoice(user=user, pushed_until=moment, mailed_until=moment)], ignore_conflicts=True
    )
    row: AlertChoice = AlertChoice.objects.select_for_update(of=("self",), no_key=True).get(user_id=user.pk)
    return row


def subscribe(user: User, *, endpoint: str, p256dh: str, auth: str, browser: str) -> PushSubscription:
    """Push to this browser from now on. Raises `SilasError` 400 for an internal address or invalid keys, 409 for too
    many browsers."""
    require_role(user, APPROVING_ROLES)
    # The endpoint comes from a browser and is requested by us later: only public addresses (SSRF).
    if settings.WEBHOOKS_PRIVATE:
        reachable = bool(host_of(endpoint, schemes=("http", "https")))
    else:
        reachable = is_public_url(endpoint)
    if not reachable:
        raise SilasError(ErrorCode.PUSH_ADDRESS)
    if problem := webpush.keys_problem(p256dh, auth):
        raise SilasError(ErrorCode.PUSH_KEYS, problem)
    hashed = sha256_hex(endpoint)
    if PushSubscription.objects.filter(user_id=user.pk).exclude(endpoint_hash=hashed).count() >= MAX_BROWSERS:
        raise SilasError(
            ErrorCode.PUSH_BROWSERS,
            gettext("Remove one of your {max_browsers} browsers first.").format(max_browsers=MAX_BROWSERS),
        )
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
    if (choice := alert_choice(user)) is None or choice.way != AlertWay.PUSH:
        set_alert_choice(user, way=AlertWay.PUSH, minutes=choice.minutes if choice else 10)
    return row


def unsubscribe(subscription_id: UUID, *, user: User) -> None:
    """Stop pushing to one of the user's browsers. Raises `NotFound` for another user's."""
    deleted, _ = PushSubscription.objects.filter(pk=subscription_id, user_id=user.pk).delete()
    if not deleted:
        raise NotFound()
    record(AuditEvent.PUSH_REMOVED, actor=user.actor, subject=f"user:{user.pk}", data={"gone": False})


def remove_expired_subscriptions(subscription_ids: Sequence[UUID]) -> None:
    """Delete subscriptions that their push service reports as gone."""
    for row in PushSubscription.objects.filter(pk__in=subscription_ids):
        row.delete()
        record(AuditEvent.PUSH_REMOVED, subject=f"user:{row.user_id}", data={"gone": True})


def claim_alerts(moment: datetime) -> list[Push | AlertEmail]:
    """Return the alerts to send now and mark them as sent; inside a scope. Rivals skip the members locked here."""
    rows = AlertChoice.objects.select_for_update(of=("self",), skip_locked=True, no_key=True)
    choices = [choice for choice in _enabled(rows) if choice.quiet_until(moment) is None]
    if not choices:
        return []
    # A card's time is taken before its commit: one that was committed late would be skipped without the slack.
    since = min(min(choice.pushed_until, choice.mailed_until) for choice in choices) - timedelta(seconds=LATE_SECONDS)
    waiting = _open_cards(moment).filter(queued_at__gt=since, queued_at__lte=moment)
    waiting_cards = _WaitingCards(list(waiting.order_by("queued_at")[:_MAX_CARDS]))
    due: list[Push | AlertEmail] = []
    for choice in choices:
        due += _due_pushes(choice, waiting_cards, moment)
        due += _due_emails(choice, waiting_cards, moment)
    if due:
        pushes = sum(isinstance(alert, Push) for alert in due)
        record(AuditEvent.ALERTS_SENT, data={"pushes": pushes, "letters": len(due) - pushes})
    return due


def next_alert_at(card_id: UUID, moment: datetime) -> datetime | None:
    """Return when the next alert about this card may be due, None if none will be. The choices are locked, so that a
    member who changes theirs meanwhile is not missed."""
    card: Card | None = _open_cards(moment).filter(pk=card_id).first()
    if card is None:
        return None
    due: list[datetime] = []
    for choice in _enabled(AlertChoice.objects.select_for_update(of=("self",), no_key=True)):
        if choice.way == AlertWay.PUSH and _is_new(card, choice):
            due.append(_after_quiet_hours(choice, max(moment, card.queued_at, _next_push(choice))))
        if card.queued_at > choice.mailed_until:
            email_at = max(moment, card.queued_at + timedelta(minutes=choice.minutes), _next_email(choice))
            due.append(_after_quiet_hours(choice, email_at))
    return max(min(due), moment + timedelta(seconds=PUSH_SECONDS)) if due else None


def _open_cards(moment: datetime) -> QuerySet[Any]:
    """Cards with their `queued_at`."""
    cards: Any = Card.objects.filter(status__in=OPEN_STATUSES, expires_at__gt=moment)
    queued: QuerySet[Any] = cards.annotate(queued_at=queries.queued_at())
    return queued


def _enabled(choices: QuerySet[AlertChoice]) -> QuerySet[AlertChoice]:
    choices = choices.select_related("user", "tenant")
    return choices.exclude(way=AlertWay.OFF).filter(user__is_active=True).order_by("pk")


def _after_quiet_hours(choice: AlertChoice, moment: datetime) -> datetime:
    return choice.quiet_until(moment) or moment


def _is_new(card: Card, choice: AlertChoice) -> bool:
    early = choice.pushed_until - timedelta(seconds=LATE_SECONDS)
    return card.queued_at > early and _push_name(card) not in choice.pushed


def _push_name(card: Card) -> str:
    """The card's name in `AlertChoice.pushed`; a card that is back from the customer gets a new one."""
    is_back = card.queued_at > card.created_at
    return f"{card.pk}@{card.queued_at.isoformat()}" if is_back else str(card.pk)


def _next_push(choice: AlertChoice) -> datetime:
    return choice.pushed_until + timedelta(seconds=PUSH_SECONDS if choice.pushed else 0)


def _next_email(choice: AlertChoice) -> datetime:
    return (choice.mailed_at or datetime.min.replace(tzinfo=UTC)) + timedelta(minutes=EMAIL_MINUTES)


def build_pushes(user_ids: Collection[UUID], payloads: Sequence[dict[str, object]]) -> list[Push]:
    """Return the same pushes for each browser of the users who chose pushes and have no quiet hours now; for rooms
    whose subjects are not cards."""
    moment = now()
    chosen = _enabled(AlertChoice.objects.filter(way=AlertWay.PUSH, user_id__in=user_ids))
    awake = [choice.user_id for choice in chosen if choice.quiet_until(moment) is None]
    return _pushes(PushSubscription.objects.filter(user_id__in=awake), payloads)


def _pushes(browsers: QuerySet[PushSubscription], payloads: Sequence[dict[str, object]]) -> list[Push]:
    return [
        Push(browser.pk, browser.endpoint, browser.p256dh, browser.auth, payload)
        for browser in browsers
        for payload in payloads
    ]


class _WaitingCards:
    """The waiting cards, and who may decide each, which is computed once a card."""

    def __init__(self, cards: list[Card]) -> None:
        self.cards = cards
        self._deciders: dict[UUID, set[UUID]] = {}

    def may_decide(self, card: Card, user_id: UUID) -> bool:
        if card.pk not in self._deciders:
            # A card whose rows cannot be read must not stop the alerts about the others.
            self._deciders[card.pk] = run_isolated(_deciders_of, card, lambda _: set())
        return user_id in self._deciders[card.pk]


def _deciders_of(card: Card) -> set[UUID]:
    return {user.pk for user in eligible_approvers(card)}


def _due_pushes(choice: AlertChoice, waiting: _WaitingCards, moment: datetime) -> list[Push]:
    if choice.way != AlertWay.PUSH or moment < _next_push(choice):
        return []
    new = [card for card in waiting.cards if _is_new(card, choice)]
    if not new:
        return []
    # Right after the choice nothing is in `pushed` yet, and cards from just before it are no news.
    mine = [card for card in new if card.queued_at > choice.pushed_until or choice.pushed]
    choice.pushed = [*choice.pushed, *(_push_name(card) for card in new)][-_KEPT_IDS:]
    choice.pushed_until = max(choice.pushed_until, *(card.queued_at for card in new))
    choice.save(update_fields=["pushed", "pushed_until"])
    payloads = _push_payloads([card for card in mine if waiting.may_decide(card, choice.user_id)])
    return _pushes(PushSubscription.objects.filter(user_id=choice.user_id), payloads)


def _push_payloads(cards: list[Card]) -> list[dict[str, object]]:
    """Return one payload a card, or a single one for many cards."""
    if len(cards) > MAX_PUSHES:
        highest = max_risk(*(Risk(card.risk) for card in cards))
        return [{"count": len(cards), "risk": highest.value, "url": REVIEW_PATH}]
    return [{"count": 1, "risk": card.risk, "url": f"{REVIEW_PATH}{card.pk}/"} for card in cards]


def _due_emails(choice: AlertChoice, waiting: _WaitingCards, moment: datetime) -> list[AlertEmail]:
    """Return an e-mail about the cards that have waited for the chosen minutes without the member looking at them."""
    early, late = choice.mailed_until, moment - timedelta(minutes=choice.minutes)
    if moment < _next_email(choice):
        return []
    due = [card for card in waiting.cards if early < card.queued_at <= late]
    if not due:
        return []
    choice.mailed_until = max(card.queued_at for card in due)
    looks = dict(Look.objects.filter(user_id=choice.user_id, card__in=due).values_list("card_id", "first_at"))
    unseen = [
        card
        for card in due
        if (card.pk not in looks or looks[card.pk] < card.queued_at) and waiting.may_decide(card, choice.user_id)
    ]
    choice.mailed_at = moment if unseen else choice.mailed_at
    choice.save(update_fields=["mailed_until", "mailed_at"])
    return (
        [AlertEmail(choice.user.email, dict(Counter(card.risk for card in unseen)), choice.user.language)]
        if unseen
        else []
    )
