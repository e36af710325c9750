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
from django.views.decorators.http import require_safe

from apps.approvals.models import Card
from apps.approvals.queries import open_cards
from apps.audit.queries import count_entries, newest_entries, within_period
from apps.console.base import page
from apps.console.members import Member, StaffRequest, staff_view
from apps.console.pages.activity.feed import FeedLine, feed_lines, merge_repeats
from apps.console.templatetags.console import usd
from apps.guard.models import SpendEntry
from apps.inbox.queries import unassigned_count
from apps.tenants.visits import last_visit_ended_at
from kernel.clock import now

SPANS = (("", "Last visit"), ("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days"))
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
    cards = list(open_cards())
    visitors = unassigned_count()
    counts = [_count(len(cards), "decision"), _count(visitors, "visitor")]
    subjects = " and ".join(text for text in counts if text)
    verb = "is" if len(cards) + visitors == 1 else "are"
    sentence = f"{subjects} {verb} waiting for a person." if subjects else "Nothing is waiting for a person."
    address = f"{reverse('console-inbox')}?tab=unassigned" if visitors else ""
    return Part("waiting", "Waiting for you", _capitalize(sentence), [], address, tuple(cards[:LINES]))


def _conversations(span: Span) -> Part:
    answered = span.count_subjects(Q(event="turn_completed"))
    handed_over = span.count_subjects(Q(event__in=_HANDED_OVER))
    failed = span.count_subjects(Q(event="turn_failed"))
    sentences = [f"Answered in {_count(answered, 'conversation')}." if answered else "No answers sent."]
    sentences += [f"{_count(handed_over, 'conversation')} handed over to a person."] if handed_over else []
    sentences += [f"{_count(failed, 'conversation')} could not be answered and went to a person."] if failed else []
    lines = span.lines(Q(event__in=TALK))
    return Part("talk", "Conversations", _join(sentences), lines, span.activity_address("conversations"))


def _work(span: Span) -> Part:
    done, runs = span.count_entries(_VERIFIED), span.count_entries(_COMPLETED_RUN)
    failed, undone = span.count_entries(_FAILED), span.count_entries(_UNDONE)
    sentences = [f"{_count(done, 'task')} completed and independently verified."] if done else []
    sentences += [f"{_count(runs, 'automation run')} completed."] if runs else []
    sentences += [f"{_count(failed, 'task')} failed or could not be verified."] if failed else []
    sentences += [f"{_count(undone, 'change')} undone."] if undone else []
    lines = span.lines(_VERIFIED | _COMPLETED_RUN | _FAILED | _UNDONE)
    sentence = _join(sentences or ["No changes were made."])
    return Part("done", "Completed and verified", sentence, lines, span.activity_address("work"))


def _refused(span: Span) -> Part:
    where = Q(event__in=REFUSALS)
    times = span.count_entries(where)
    verb = "was" if times == 1 else "were"
    sentence = f"{_count(times, 'action')} {verb} refused, blocked or stopped." if times else "Nothing was refused."
    return Part("refused", "Refused and blocked", sentence, span.lines(where), span.activity_address("everything"))


def _spent(since: datetime) -> Part:
    rows = SpendEntry.objects.filter(day__gte=timezone.localtime(since).date(), created_at__gte=since)
    total = rows.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)
    models = [model for model in rows.values_list("model", flat=True).order_by("model").distinct() if model]
    on = f" on {', '.join(models)}" if models else ""
    sentence = f"{usd(total)}{on}." if total else "Nothing."
    return Part("spent", "Spent", sentence, [], reverse("console-spending"))


def _count(number: int, noun: str) -> str:
    """Return `3 visitors`, or nothing for none."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _join(sentences: Iterable[str]) -> str:
    return " ".join(map(_capitalize, sentences))


def _moment(text: str) -> datetime | None:
    """Return a moment of the past year, or None."""
    try:
        parsed = parse_datetime(text)
        local = timezone.make_aware(parsed) if parsed and timezone.is_naive(parsed) else parsed
        return local if local and now() - _LONGEST <= local <= now() else None
    except (ValueError, OverflowError):
        return None
