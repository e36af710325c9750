"""The filter and the order of the review queue, read from an address.

The parameters are part of the address of the queue and of every card opened from it, so that members keep their place.
Values that mean nothing are ignored. The queue is filtered after it was read: the same rows give the choices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card
from apps.console.members import StaffRequest
from apps.tenants.models import Deployment, User

_RISKS = list(Risk)


class Due(StrEnum):
    """How soon a card expires."""

    HOUR = "hour"
    DAY = "day"


class Show(StrEnum):
    """Which part of the queue, if not the cards to decide."""

    PARKED = "parked"


class Assigned(StrEnum):
    ME = "me"
    NOBODY = "nobody"


class Sort(StrEnum):
    DEADLINE = "deadline"
    RISK = "risk"
    OLDEST = "oldest"
    NEWEST = "newest"


_WITHIN = {Due.HOUR: timedelta(hours=1), Due.DAY: timedelta(days=1)}
DUE_CHOICES = ((Due.HOUR, gettext_lazy("Within an hour")), (Due.DAY, gettext_lazy("Within a day")))
ASSIGNED_CHOICES = ((Assigned.ME, gettext_lazy("Me")), (Assigned.NOBODY, gettext_lazy("Unassigned")))
SORT_CHOICES = (
    (Sort.DEADLINE, gettext_lazy("Nearest deadline")),
    (Sort.RISK, gettext_lazy("Highest risk")),
    (Sort.OLDEST, gettext_lazy("Oldest")),
    (Sort.NEWEST, gettext_lazy("Newest")),
)


@dataclass(frozen=True)
class QueueFilter:
    """Which cards of the queue to show, in which order; None means any."""

    risk: Risk | None = None
    kind: CardKind | None = None
    chatbot: UUID | None = None
    due: Due | None = None
    assigned: Assigned | None = None
    sort: Sort = Sort.DEADLINE
    show: Show | None = None

    @property
    def is_active(self) -> bool:
        """True if cards of the chosen part may be left out; the order leaves none out."""
        return any((self.risk, self.kind, self.chatbot, self.due, self.assigned))

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that differ from the whole queue."""
        values = {name: getattr(self, name) for name in _READERS}
        return {name: str(value) for name, value in values.items() if value and value != Sort.DEADLINE}

    @property
    def query_string(self) -> str:
        """Those parameters, beginning with `?`; empty for none."""
        encoded = urlencode(self.parameters)
        return f"?{encoded}" if encoded else ""

    def apply(self, cards: Iterable[Card], *, user: User, moment: datetime) -> list[Card]:
        """Return the cards that match, sorted. `cards` come with the nearest deadline first, which decides ties."""
        found = [card for card in cards if self._matches(card, user, moment)]
        if self.sort is Sort.RISK:
            return sorted(found, key=lambda card: -_RISKS.index(Risk(card.risk)))
        if self.sort is Sort.DEADLINE:
            return found
        return sorted(found, key=lambda card: card.created_at, reverse=self.sort is Sort.NEWEST)

    def _matches(self, card: Card, user: User, moment: datetime) -> bool:
        return (
            self.risk in (None, card.risk)
            and self.kind in (None, card.kind)
            and self.chatbot in (None, card.deployment_id)
            and (self.due is None or card.expires_at <= moment + _WITHIN[self.due])
            and (self.assigned is None or card.assignee_id == (user.pk if self.assigned is Assigned.ME else None))
        )


_READERS: dict[str, Any] = {
    "risk": Risk,
    "kind": CardKind,
    "chatbot": UUID,
    "due": Due,
    "assigned": Assigned,
    "sort": Sort,
    "show": Show,
}


def filter_of(request: StaffRequest) -> QueueFilter:
    """Return the filter of the request's address, otherwise that of the review page that sent the request.

    HTMX sends that page's address as a header; without scripts, forms send its filter in the field `queue`.
    """
    parameters: Mapping[str, str] = request.GET
    if request.method == "POST" and not request.htmx:
        parameters = dict(parse_qsl(request.POST.get("queue", "").removeprefix("?")))
    if request.htmx and not _READERS.keys() & parameters.keys():
        here = urlsplit(request.htmx.current_url or "")
        is_review = here.path.startswith(reverse("console-review"))
        parameters = dict(parse_qsl(here.query)) if is_review else {}
    return filter_from(parameters)


def filter_from(parameters: Mapping[str, str]) -> QueueFilter:
    chosen = {name: _read(reader, parameters.get(name, "")) for name, reader in _READERS.items()}
    return QueueFilter(**{name: value for name, value in chosen.items() if value is not None})


def saved_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a filter that a saved view keeps. Raises `ValueError` for one that means nothing."""
    chosen = filter_from(parameters)
    if any(value and str(getattr(chosen, name, "")) != value for name, value in parameters.items()):
        raise ValueError
    return chosen.parameters


def _read(reader: Any, text: str) -> Any:
    try:
        return reader(text)
    except ValueError:
        return None


def choices_for(cards: Sequence[Card], chosen: QueueFilter) -> dict[str, list[tuple[str, str]]]:
    """Return what to choose from: the kinds and chatbots of the waiting cards, and what is chosen already."""
    kinds = {card.kind: str(card.get_kind_display()) for card in cards}
    if chosen.kind:
        kinds.setdefault(chosen.kind.value, str(Card(kind=chosen.kind.value).get_kind_display()))
    chatbots = {str(card.deployment_id): card.deployment.title for card in cards if card.deployment}
    if chosen.chatbot and str(chosen.chatbot) not in chatbots:
        chatbots |= {
            str(pk): title for pk, title in Deployment.objects.filter(pk=chosen.chatbot).values_list("pk", "title")
        }
    return {
        "kinds": sorted(kinds.items(), key=lambda choice: choice[1]),
        "chatbots": sorted(chatbots.items(), key=lambda choice: choice[1]),
    }
