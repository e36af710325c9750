"""While you were away: what happened since a member's last visit, or since a moment that they choose.

Counts cover the whole span; each part shows its newest few entries. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, Sum
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from apps.approvals.models import Card
from apps.approvals.queries import waiting_cards
from apps.audit.queries import count_entries, newest_entries, within_period
from apps.console.base import page
from apps.console.members import Member, StaffRequest, staff_view
from apps.console.pages.activity.feed import FeedLine, feed_lines, merge_repeats
from apps.console.templatetags.console import thousands, usd
from apps.guard.models import SpendEntry
from apps.inbox.queries import unassigned_count
from apps.tenants.visits import last_visit_ended_at
from kernel.clock import now

SPANS = (
    ("", gettext_lazy("Last visit")),
    ("24h", gettext_lazy("24 hours")),
    ("7d", gettext_lazy("7 days")),
    ("30d", gettext_lazy("30 days")),
)
_LENGTHS = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
# The span of a member's first visit, and the longest span that can be chosen.
_FIRST_VISIT, _LONGEST = timedelta(days=1), timedelta(days=366)
LINES = 5
# Entries read for these lines: consecutive entries with the same sentence become one line.
_ENTRIES_READ = 60
TALK = frozenset({"turn_failed", "person_wanted", "taken_over", "handed_back", "staff_replied", "model_fell_back"})
_HANDED_OVER = ("person_wanted", "taken_over", "staff_replied")
_VERIFIED = Q(event="work_moved", data__contains='"status":"done"')
_COMPLETED_RUN = Q(event="autonomous_ended", data__contains='"status":"completed"')
_UNDONE = Q(event="undo_begun")
_FAILED = Q(event="work_moved") & (Q(data__contains='"status":"failed"') | Q(data__contains='"status":"stuck"'))
REFUSALS = frozenset(
    {
        "gate_blocked",
        "approval_refused",
        "execution_blocked_no_approval",
        "passkey_refused",
        "identity_failed",
        "identity_throttled",
        "signature_refused",
        "message_replayed",
        "work_refused",
        "spawn_refused",
        "memory_op_blocked",
        "cost_cap_reached",
        "budget_reached",
        "halted",
        "task_quarantined",
        "message_dead",
        "card_expired",
    }
)
# An offer to undo what was done, which is no longer made: nothing was refused.
_OFFER_ENDED = Q(event="card_expired", data__contains='"kind":"post_execution"')


@dataclass(frozen=True)
class Part:
    """One section of the page: a sentence with counts, the newest lines or cards, and the address of all of them."""

    name: str
    title: str
    sentence: str
    lines: list[FeedLine]
    more: str = ""
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True)
class Span:
    """The time since `since` for one member; `condition` selects its audit entries."""

    member: Member
    since: datetime
    condition: Q

    @property
    def chain(self) -> UUID:
        return self.member.tenant.pk

    def lines(self, where: Q) -> list[FeedLine]:
        entries = newest_entries(self.chain, below=None, limit=_ENTRIES_READ, where=self.condition & where)
        return merge_repeats(feed_lines(self.member, entries))[:LINES]

    def count_entries(self, where: Q) -> int:
        return count_entries(self.chain, self.condition & where)[0]

    def count_subjects(self, where: Q) -> int:
        return count_entries(self.chain, self.condition & where)[1]

    def activity_address(self, show: str) -> str:
        """The address of the activity feed with this kind of events, from the first day of the span on."""
        day = timezone.localtime(self.since).date()
        return f"{reverse('console-activity')}?{urlencode({'show': show, 'from': day})}"


@require_safe
@staff_view()
def away(request: StaffRequest) -> HttpResponseBase:
    """Show the summary. `span` is one of the spans; `since`, a moment in the tenant's time zone, overrides it."""
    span, visited = request.GET.get("span", ""), last_visit_ended_at(request.member.user)
    chosen = _moment(request.GET.get("since", ""))
    known = span if span in _LENGTHS else ""
    since = chosen or (now() - _LENGTHS[known] if known else visited or now() - _FIRST_VISIT)
    return page(
        request,
        "console/away.html",
        at="activity",
        spans=SPANS,
        span="chosen" if chosen else known,
        since=since,
        visited=visited,
        parts=summarize(request.member, since),
    )


def summarize(member: Member, since: datetime) -> list[Part]:
    """Return the sections, waiting work first; spending only for members who may see it."""
    span = Span(member, since, within_period(member.tenant.pk, since, None))
    parts = [_waiting(), _conversations(span), _work(span), _refused(span)]
    return [*parts, *([_spent(since)] if member.may_decide else [])]


def _waiting() -> Part:
    cards = list(waiting_cards())
    visitors = unassigned_count()
    sentence = _("Nothing is waiting for a person.")
    if cards and visitors:
        sentence = _("{decisions} and {visitors} are waiting for a person.").format(
            decisions=_count(ngettext("{number} decision", "{number} decisions", len(cards)), len(cards)),
            visitors=_count(ngettext("{number} visitor", "{number} visitors", visitors), visitors),
        )
    elif cards:
        sentence = _count(
            ngettext(
                "{number} decision is waiting for a person.", "{number} decisions are waiting for a person.", len(cards)
            ),
            len(cards),
        )
    elif visitors:
        sentence = _count(
            ngettext(
                "{number} visitor is waiting for a person.", "{number} visitors are waiting for a person.", visitors
            ),
            visitors,
        )
    address = f"{reverse('console-inbox')}?tab=unassigned" if visitors else ""
    return Part("waiting", _("Waiting for you"), sentence, [], address, tuple(cards[:LINES]))


def _conversations(span: Span) -> Part:
    answered = span.count_subjects(Q(event="turn_completed"))
    handed_over = span.count_subjects(Q(event__in=_HANDED_OVER))
    failed = span.count_subjects(Q(event="turn_failed"))
    sentences = [
        _count(
            ngettext("Answered in {number} conversation.", "Answered in {number} conversations.", answered), answered
        )
        or _("No answers sent."),
        _count(
            ngettext(
                "{number} conversation handed over to a person.",
                "{number} conversations handed over to a person.",
                handed_over,
            ),
            handed_over,
        ),
        _count(
            ngettext(
                "{number} conversation could not be answered and went to a person.",
                "{number} conversations could not be answered and went to a person.",
                failed,
            ),
            failed,
        ),
    ]
    lines = span.lines(Q(event__in=TALK))
    return Part("talk", _("Conversations"), _join(sentences), lines, span.activity_address("conversations"))


def _work(span: Span) -> Part:
    done, runs = span.count_entries(_VERIFIED), span.count_entries(_COMPLETED_RUN)
    failed, undone = span.count_entries(_FAILED), span.count_entries(_UNDONE)
    sentences = [
        _count(
            ngettext(
                "{number} task completed and independently verified.",
                "{number} tasks completed and independently verified.",
                done,
            ),
            done,
        ),
        _count(ngettext("{number} automation run completed.", "{number} automation runs completed.", runs), runs),
        _count(
            ngettext(
                "{number} task failed or could not be verified.",
                "{number} tasks failed or could not be verified.",
                failed,
            ),
            failed,
        ),
        _count(ngettext("{number} change undone.", "{number} changes undone.", undone), undone),
    ]
    lines = span.lines(_VERIFIED | _COMPLETED_RUN | _FAILED | _UNDONE)
    sentence = _join(sentences) or _("No changes were made.")
    return Part("done", _("Completed and verified"), sentence, lines, span.activity_address("work"))


def _refused(span: Span) -> Part:
    where = Q(event__in=REFUSALS) & ~_OFFER_ENDED
    times = span.count_entries(where)
    sentence = _count(
        ngettext(
            "{number} action was refused, blocked or stopped.",
            "{number} actions were refused, blocked or stopped.",
            times,
        ),
        times,
    ) or _("Nothing was refused.")
    return Part("refused", _("Refused and blocked"), sentence, span.lines(where), span.activity_address("everything"))


def _spent(since: datetime) -> Part:
    rows = SpendEntry.objects.filter(day__gte=timezone.localtime(since).date(), created_at__gte=since)
    total = rows.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)
    models = [model for model in rows.values_list("model", flat=True).order_by("model").distinct() if model]
    sentence = _("Nothing.")
    if total and models:
        sentence = _("{amount} on {models}.").format(amount=usd(total), models=", ".join(models))
    elif total:
        sentence = f"{usd(total)}."
    return Part("spent", _("Spent"), sentence, [], reverse("console-spending"))


def _count(sentence: str, number: int) -> str:
    """Return the sentence with its number, or nothing for none."""
    return sentence.format(number=thousands(number)) if number else ""


def _join(sentences: Iterable[str]) -> str:
    return " ".join(filter(None, sentences))


def _moment(text: str) -> datetime | None:
    """Return a moment of the past year, or None."""
    try:
        parsed = parse_datetime(text)
        local = timezone.make_aware(parsed) if parsed and timezone.is_naive(parsed) else parsed
        return local if local and now() - _LONGEST <= local <= now() else None
    except (ValueError, OverflowError):
        return None
