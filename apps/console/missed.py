"""What did the platform do while somebody was away? Counts and the newest lines of each kind, from the log and the
tables beside it.

Counts are of the whole span; lines are the newest few, each with its entry. Nothing here is stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, Sum
from django.urls import reverse
from django.utils import timezone

from apps.approvals.models import Card
from apps.approvals.queries import open_cards
from apps.audit.queries import count_entries, newest_entries, within_period
from apps.console.members import Member
from apps.console.templatetags.console import usd
from apps.console.told import Told, told_to, without_repeats
from apps.guard.models import SpendEntry
from apps.sessions.inbox.queries import unassigned_count

LINES = 5
# So many entries are looked at for them: what says the same in a row is one line.
_LOOKED_AT = 60
TALK = frozenset({"turn_failed", "person_wanted", "taken_over", "handed_back", "staff_replied", "model_fell_back"})
_BY_PEOPLE = ("person_wanted", "taken_over", "staff_replied")
_PROVED = Q(event="work_moved", data__contains='"status":"done"')
_ENDED = Q(event="autonomous_ended", data__contains='"status":"completed"')
_UNDONE = Q(event="undo_begun")
_FAILED = Q(event="work_moved") & (Q(data__contains='"status":"failed"') | Q(data__contains='"status":"stuck"'))
NO = frozenset(
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
    """One kind of what happened: a sentence with its counts, its newest lines, and where the rest stands."""

    name: str
    title: str
    sentence: str
    lines: list[Told]
    more: str = ""
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True)
class Missed:
    """`when`: the span as a condition on entries."""

    member: Member
    since: datetime
    when: Q

    @property
    def chain(self) -> UUID:
        return self.member.tenant.pk

    def lines(self, where: Q) -> list[Told]:
        entries = newest_entries(self.chain, below=None, limit=_LOOKED_AT, where=self.when & where)
        return without_repeats(told_to(self.member, entries))[:LINES]

    def entries(self, where: Q) -> int:
        return count_entries(self.chain, self.when & where)[0]

    def subjects(self, where: Q) -> int:
        return count_entries(self.chain, self.when & where)[1]

    def more(self, show: str) -> str:
        """The timeline of this kind from that day on."""
        day = timezone.localtime(self.since).date()
        return f"{reverse('console-activity')}?{urlencode({'show': show, 'from': day})}"


def missed_by(member: Member, since: datetime) -> list[Part]:
    """The parts in their order: what waits for somebody comes first. Money only for those who see the spending."""
    missed = Missed(member, since, within_period(member.tenant.pk, since, None))
    parts = [_waiting(), _conversations(missed), _done(missed), _refused(missed)]
    return [*parts, *([_spent(since)] if member.may_decide else [])]


def _waiting() -> Part:
    cards = list(open_cards())
    visitors = unassigned_count()
    said = [_many(len(cards), "decision"), _many(visitors, "visitor")]
    waits = " and ".join(words for words in said if words)
    one = len(cards) + visitors == 1
    sentence = f"{waits} wait{'s' if one else ''} for a person." if waits else "Nothing waits for a person."
    address = f"{reverse('console-inbox')}?tab=unassigned" if visitors else ""
    return Part("waiting", "Waiting for you", _begin(sentence), [], address, tuple(cards[:LINES]))


def _conversations(missed: Missed) -> Part:
    answered = missed.subjects(Q(event="turn_completed"))
    people, failed = missed.subjects(Q(event__in=_BY_PEOPLE)), missed.subjects(Q(event="turn_failed"))
    said = [f"Answered in {_many(answered, 'conversation')}." if answered else "Nobody was answered."]
    said += [f"In {_many(people, 'conversation')} a person was wanted, or stepped in."] if people else []
    said += [f"{_many(failed, 'conversation')} could not be answered and went to a person."] if failed else []
    return Part(
        "talk", "Conversations", _sentences(said), missed.lines(Q(event__in=TALK)), missed.more("conversations")
    )


def _done(missed: Missed) -> Part:
    done, runs = missed.entries(_PROVED), missed.entries(_ENDED)
    failed, undone = missed.entries(_FAILED), missed.entries(_UNDONE)
    each = "and" if done == 1 else "each"
    said = [f"{_many(done, 'piece')} of work done, {each} checked outside the agent."] if done else []
    said += [f"{_many(runs, 'task')} ended by {'itself' if runs == 1 else 'themselves'}."] if runs else []
    said += [f"{_many(failed, 'piece')} of work failed or could not be proved."] if failed else []
    said += [f"{_many(undone, 'thing')} taken back."] if undone else []
    lines = missed.lines(_PROVED | _ENDED | _FAILED | _UNDONE)
    return Part("done", "Done and verified", _sentences(said or ["Nothing was changed."]), lines, missed.more("work"))


def _refused(missed: Missed) -> Part:
    where = Q(event__in=NO)
    times = missed.entries(where)
    were = f"{_many(times, 'thing')} {'was' if times == 1 else 'were'}"
    said = f"{were} refused, blocked or stopped." if times else "Nothing was refused."
    return Part("refused", "Refused and blocked", _begin(said), missed.lines(where), missed.more("everything"))


def _spent(since: datetime) -> Part:
    rows = SpendEntry.objects.filter(day__gte=timezone.localtime(since).date(), created_at__gte=since)
    total = rows.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)
    models = [model for model in rows.values_list("model", flat=True).order_by("model").distinct() if model]
    on = f" on {', '.join(models)}" if models else ""
    said = f"{usd(total)}{on}." if total else "Nothing."
    return Part("spent", "Spent", said, [], reverse("console-spending"))


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""


def _begin(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _sentences(said: Iterable[str]) -> str:
    return " ".join(map(_begin, said))
